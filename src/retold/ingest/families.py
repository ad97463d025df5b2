"""What belongs together, as it is found out bit by bit."""

from collections.abc import Iterable


def heads(count: int, together: Iterable[Iterable[int]]) -> list[int]:
    """Return, for each of so many places, the first of all that it belongs together with; often that is itself."""
    found = list(range(count))
    for places in together:
        first, *others = sorted({_head(found, place) for place in places})
        for other in others:
            found[other] = first
    return [_head(found, place) for place in range(count)]


def _head(found: list[int], place: int) -> int:
    while found[place] != place:
        place = found[place]
    return place

"""Names with humps that hold a word as one of their parts, as `timeZone` holds `zone`."""

from __future__ import annotations

from retold.archive.index.tokenizer import part_spans

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Collection

    from retold.archive.index.reader import Index


def names_with_parts(index: Index, words: Collection[str]) -> dict[str, list[str]]:
    """Return for each word the names in the index that hold it, the shortest first."""
    there = sorted(
        set(index.at_once(lambda file: file.names_with(words))), key=lambda name: (len(name), name)
    )
    found: dict[str, list[str]] = {}
    for word in words:
        fitting = [name.lower() for name in there if is_part(word, name)]
        if fitting:
            found[word] = fitting
    return found


def is_part(word: str, name: str) -> bool:
    """Tell whether a word is a part of a name, or several parts side by side, as `httpserver` in `HTTPServer2`."""
    whole = name.lower()
    if word not in whole:
        return False
    spans = part_spans(name)
    starts, ends = {start for start, _ in spans}, {end for _, end in spans}
    places = (place for place in starts if whole.startswith(word, place))
    return any(place + len(word) in ends for place in places)

"""How near to each other the words of a question stand in a conversation, and what that is worth."""

from __future__ import annotations

from heapq import heappush, heappushpop, nlargest

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Held = tuple[float, int, int]
    """What a word is worth where it stands, the place in the timeline, and the document."""

NEAR = 4
"""Entries of a timeline from which on a word is worth half of what it would be in the same one."""
ANYWHERE = 0.2
"""What a word is worth however far away it stands: it is the same conversation."""
AGAIN, TIMES = 0.2, 2
"""What it adds that a word is said again near by, and how many times: a conversation comes back to what it is about."""
FEW = 5
"""How many places of a word are looked at: where it is worth most."""


class ProximityScore:
    """What a conversation holds of a question: for each word, where it stands and what it is worth there."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held: dict[int, dict[int, Held]] = {}
        """By word and document."""

    def hold(self, word: int, held: Held) -> None:
        """Add where a word stands; in one document, the form counts that is worth most."""
        docs = self.held.setdefault(word, {})
        known = docs.get(held[2])
        if known is None or known[0] < held[0]:
            docs[held[2]] = held

    @property
    def most(self) -> float:
        """What it could be worth at most, if all words stood together."""
        return sum([max(docs.values())[0] for docs in self.held.values()]) * (1 + AGAIN * TIMES)

    def worth(self) -> tuple[float, list[int]]:
        """Return what it is worth, and its documents: the one around which most stands, and what else there is."""
        by_word = {word: nlargest(FEW, docs.values()) for word, docs in self.held.items()}
        anchors = {(seq, doc) for places in by_word.values() for _, seq, doc in places}
        best, seq, doc = max([(self._around(seq, doc, by_word), -seq, doc) for seq, doc in anchors])
        lacking = [places for word, places in by_word.items() if doc not in self.held[word]]
        return best, [doc, *_nearest(-seq, lacking)]

    def _around(self, anchor: int, doc: int, by_word: Mapping[int, Sequence[Held]]) -> float:
        """Return what the words are worth for somebody who reads one document and looks around."""
        total = 0.0
        for word, places in by_word.items():
            worths = sorted([worth * _share(seq - anchor) for worth, seq, _ in places], reverse=True)
            here = self.held[word].get(doc, (0.0,))[
                0
            ]  # where a word is everywhere, it may be among the others
            total += max(worths[0], here) + AGAIN * sum(worths[1 : 1 + TIMES])
        return total


def _share(distance: int) -> float:
    return max(ANYWHERE, NEAR / (NEAR + abs(distance)))


def _nearest(anchor: int, lacking: Sequence[Sequence[Held]]) -> list[int]:
    """Return documents that hold what another does not, each nearest to it, what is worth most first."""
    nearest = [max(places, key=lambda held: held[0] * _share(held[1] - anchor)) for places in lacking]
    return list(dict.fromkeys(doc for _, _, doc in sorted(nearest, reverse=True)))


def best_of(conversed: Mapping[int, ProximityScore], most: int) -> list[tuple[float, int, list[int]]]:
    """Return the conversations that are worth most, with their documents; what cannot be among them is not weighed."""
    found: list[tuple[float, int, list[int]]] = []
    for bound, session in sorted([(one.most, session) for session, one in conversed.items()], reverse=True):
        if len(found) >= most and found[0][0] >= bound:
            break
        worth, docs = conversed[session].worth()
        (heappush if len(found) < most else heappushpop)(found, (worth, session, docs))
    return sorted(found, reverse=True)

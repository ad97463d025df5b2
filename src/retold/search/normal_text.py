"""A text in the form in which the index has its words, and the way from a place in that form to the place in the text."""

from __future__ import annotations

import re
from itertools import accumulate

from retold.archive.index.tokenizer import is_joined, normal

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterator


_RUN = re.compile(r"[^\x00-\x7f]+")


class NormalText:
    """The normal form of a text; places in it lead back into the text."""

    __slots__ = ("_pieces", "_text", "normal")

    def __init__(self, text: str) -> None:
        self._text, self.normal = text, normal(text)
        self._pieces: list[tuple[int, int, int, int]] = []
        """Where each piece begins and ends in the normal form and in the text, once a place was asked for."""

    def _take_apart(self) -> None:
        text = self._text
        pieces = list(_pieces(text))
        forms = [normal(piece) for piece in pieces]
        if (
            "".join(forms) != self.normal
        ):  # a piece became one with another: nothing finer than the whole text is known
            pieces, forms = [text], [self.normal]
        ends = zip(accumulate(map(len, forms)), accumulate(map(len, pieces)), strict=True)
        self._pieces = [
            (end - len(form), end, text_end - len(piece), text_end)
            for form, piece, (end, text_end) in zip(forms, pieces, ends, strict=True)
        ]

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of the normal form stands in the text; what became several letters is taken as a whole."""
        if self.normal == self._text:
            return start, end
        if not self._pieces:
            self._take_apart()
        first, last = self._piece_at(start), self._piece_at(end - 1)
        return self._text_place(first, start, is_end=False), self._text_place(last, end, is_end=True)

    def _piece_at(self, place: int) -> tuple[int, int, int, int]:
        from bisect import bisect_right

        return self._pieces[bisect_right(self._pieces, place, key=lambda piece: piece[0]) - 1]

    @staticmethod
    def _text_place(piece: tuple[int, int, int, int], place: int, *, is_end: bool) -> int:
        begin, end, text_begin, text_end = piece
        if end - begin == text_end - text_begin:
            return text_begin + place - begin
        return text_end if is_end else text_begin


def _pieces(text: str) -> Iterator[str]:
    """Yield the pieces of a text that have a normal form of their own: ASCII, and each other character with its marks."""
    done = 0
    for run in _RUN.finditer(text):
        begin = run.start()
        if begin > done and is_joined(text[begin]):
            begin -= 1
        if begin > done:
            yield text[done:begin]
        done = begin
        for place in range(begin + 1, run.end()):
            if not is_joined(text[place]):
                yield text[done:place]
                done = place
        yield text[done : run.end()]
        done = run.end()
    if done < len(text):
        yield text[done:]

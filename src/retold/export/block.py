"""Lines of a page that belong to one entry, gathered with where each of its words stands."""

from typing import Any

from retold.reading.markdown_codec import Look, fenced, mark, shown

Json = dict[str, Any]
BlockPlace = tuple[int, int, Look]
"""The first line behind the mark, how many lines, and how words stand in them."""


class MarkdownBlock:
    """Grows line by line; every piece is followed by an empty line."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.lines = 1  # the mark is followed by an empty line as well
        self.parts: list[Json] = []

    def put(self, text: str) -> int:
        """Add lines of our own; return how many they are."""
        self.pieces.append(text)
        count = text.count("\n") + 1
        self.lines += count + 1
        return count

    def words(self, text: str, *, is_quoted: bool = False) -> BlockPlace:
        """Add what somebody said; return where it stands."""
        lines, look = shown(text, is_quoted=is_quoted)
        start = self.lines
        return start, self.put(lines), look

    def code(self, text: str, info: str = "") -> BlockPlace:
        """Add what is not prose; return where it stands."""
        start = self.lines
        return start, self.put(fenced(text, info)), "fence"

    def page(self, about: Json) -> str:
        """Return the block behind its mark."""
        told = {**about, "lines": self.lines, **({"parts": self.parts} if self.parts else {})}
        return "\n\n".join((mark(told), *self.pieces, ""))

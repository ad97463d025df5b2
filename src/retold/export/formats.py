"""The forms in which conversations are exported."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from retold.export.telling import Choice, Telling

    Pieces = Callable[[Iterable[Telling], Choice], Iterator[bytes]]
    """Yields a file, piece by piece: a conversation may be larger than what should be in memory twice."""


class Format:
    """A form: how its files are called, and whether several conversations go into one."""

    __slots__ = ("holds_many", "module", "suffix", "told")

    def __init__(self, told: str, suffix: str, module: str, *, holds_many: bool = False) -> None:
        self.told, self.suffix, self.module, self.holds_many = told, suffix, module, holds_many

    def pieces(self) -> Pieces:
        """Return what writes it; whatever that takes is imported now."""
        found: Pieces = import_module(f"retold.export.{self.module}").pieces
        return found


FORMATS = {
    "html": Format("a page to read in a browser, by itself", ".html", "html"),
    "json": Format("a session as `retold show --json` prints it", ".json", "session_json"),
    "jsonl": Format("events, one JSON object per line", ".jsonl", "event_lines", holds_many=True),
}

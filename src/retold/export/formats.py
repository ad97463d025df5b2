"""The forms in which conversations are exported."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from retold.export.telling import ExportOptions, ExportSession
    from retold.model.session import Session

    Pieces = Callable[[Iterable[ExportSession], ExportOptions], Iterator[bytes]]
    """Yields a file, piece by piece: a conversation may be larger than what should be in memory twice."""
    Index = Callable[[Iterable[tuple[str, Session]], ExportOptions], Iterator[bytes]]
    """Yields a page that leads to files, by their names, each with its session without what was said."""


class Format:
    """A form: how its files are called, whether several conversations go into one, and whether it is text."""

    __slots__ = ("_module", "holds_many", "is_binary", "suffix", "told")

    def __init__(
        self, told: str, suffix: str, module: str, *, holds_many: bool = False, is_binary: bool = False
    ) -> None:
        self.told, self.suffix, self._module = told, suffix, module
        self.holds_many, self.is_binary = holds_many, is_binary

    def pieces(self) -> Pieces:
        """Return what writes it; whatever that takes is imported now."""
        found: Pieces = import_module(f"retold.export.{self._module}").pieces
        return found

    def index(self) -> Index | None:
        """Return what writes a page over many files; None for a form that has none."""
        found: Index | None = getattr(import_module(f"retold.export.{self._module}"), "index_pieces", None)
        return found


FORMATS = {
    "md": Format("Markdown to read and to paste; `retold read` reads it back", ".md", "markdown"),
    "html": Format("a page to read in a browser, by itself", ".html", "html"),
    "json": Format("a session as `retold show --json` prints it", ".json", "session_json"),
    "jsonl": Format("events, one JSON object per line", ".jsonl", "event_lines", holds_many=True),
    "share-md": Format("Markdown as `/chat share` of Gemini CLI writes it", ".md", "share_md"),
    "share-json": Format("JSON as `/chat share` of Gemini CLI writes it", ".json", "share_json"),
    "chat": Format(
        "chat messages with roles and tool calls, one conversation per line",
        ".jsonl",
        "chat_lines",
        holds_many=True,
    ),
    "csv": Format(
        "a row for each entry and tool call, safe for spreadsheets", ".csv", "session_csv", holds_many=True
    ),
    "atif": Format("a trajectory in the Agent Trajectory Interchange Format", ".json", "atif"),
    "otel": Format("OpenTelemetry GenAI spans, OTLP JSON", ".jsonl", "otel", holds_many=True),
    "otel-proto": Format(
        "the same as Protocol Buffers", ".pb", "otel_proto", holds_many=True, is_binary=True
    ),
}

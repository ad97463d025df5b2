"""What an export is given: conversations, with the subagents inside their calls, and how to tell them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Literal

import msgspec

from retold.model.session import Session

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class ExportSession(msgspec.Struct, frozen=True):
    """A conversation to be told."""

    session: Session
    """In the view that was asked for, and already without its secrets, unless they are to stay."""
    subagents: Mapping[str, ExportSession] = {}
    """Those that its calls started (`ToolCall.child`), by their keys; one that is not there is told by its call alone."""


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to tell it; a form that has no use for something takes no notice of it."""

    thoughts: bool = False
    """Also what the model thought."""
    tools: Literal["none", "names", "full"] = "full"
    """Calls not at all, on a line each, or with their arguments and results."""
    tokens: bool = False
    """The tokens of each answer."""
    notices: bool = False
    """Also notices, and what the agent added to messages."""
    is_redacted: bool = True
    """Whether secrets were taken out: a document says so."""
    templates: Path | None = None
    """A folder with templates that win over our own."""


if TYPE_CHECKING:
    Pieces = Callable[[Iterable[ExportSession], ExportOptions], Iterator[bytes]]
    """Yields a file, piece by piece: a conversation may be larger than what should be in memory twice."""
    Index = Callable[[Iterable[tuple[str, Session]], ExportOptions], Iterator[bytes]]
    """Yields a page that leads to files, by their names, each with its session without what was said."""


class Format:
    """A form: how its files are called, whether several conversations go into one, and whether it is text."""

    __slots__ = ("_function", "_module", "holds_many", "is_binary", "suffix", "told")

    def __init__(
        self, told: str, suffix: str, place: str, *, holds_many: bool = False, is_binary: bool = False
    ) -> None:
        self.told, self.suffix = told, suffix
        self._module, _, self._function = place.partition(":")
        self.holds_many, self.is_binary = holds_many, is_binary

    def pieces(self) -> Pieces:
        """Return what writes it; whatever that takes is imported now."""
        found: Pieces = getattr(import_module(f"retold.export.{self._module}"), self._function)
        return found

    def index(self) -> Index | None:
        """Return what writes a page over many files; None for a form that has none."""
        found: Index | None = getattr(import_module(f"retold.export.{self._module}"), "index_pieces", None)
        return found


FORMATS = {
    "md": Format(
        "Markdown to read and to paste; `retold read` reads it back", ".md", "formats.markdown:pieces"
    ),
    "html": Format("a page to read in a browser, by itself", ".html", "html.page:pieces"),
    "json": Format("a session as `retold show --json` prints it", ".json", "formats.jsonl:json_pieces"),
    "jsonl": Format(
        "events, one JSON object per line", ".jsonl", "formats.jsonl:event_pieces", holds_many=True
    ),
    "share-md": Format(
        "Markdown as `/chat share` of Gemini CLI writes it", ".md", "formats.gemini_share:share_md_pieces"
    ),
    "share-json": Format(
        "JSON as `/chat share` of Gemini CLI writes it", ".json", "formats.gemini_share:share_json_pieces"
    ),
    "chat": Format(
        "chat messages with roles and tool calls, one conversation per line",
        ".jsonl",
        "formats.jsonl:chat_pieces",
        holds_many=True,
    ),
    "csv": Format(
        "a row for each entry and tool call, safe for spreadsheets",
        ".csv",
        "formats.csv:pieces",
        holds_many=True,
    ),
    "atif": Format("a trajectory in the Agent Trajectory Interchange Format", ".json", "formats.atif:pieces"),
    "otel": Format("OpenTelemetry GenAI spans, OTLP JSON", ".jsonl", "formats.otel:pieces", holds_many=True),
    "otel-proto": Format(
        "the same as Protocol Buffers", ".pb", "formats.otel_proto:pieces", holds_many=True, is_binary=True
    ),
}

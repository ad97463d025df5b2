"""The export formats (`FORMATS`), and the options and sessions that each of them is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from retold.model.session import Session


class ExportSession(msgspec.Struct, frozen=True):
    """A session with the sessions of its subagents."""

    session: Session
    """In the view that was chosen, with secrets already removed if they are to be."""
    subagents: Mapping[str, ExportSession] = {}
    """Sessions that its calls started (`ToolCall.child`), by key. A subagent that is missing is shown by its call alone."""


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an export. A format ignores those that it has no use for."""

    thoughts: bool = False
    """Include the model's thoughts."""
    tools: Literal["none", "names", "full"] = "full"
    """Leave tool calls out, show each on a line, or include arguments and results."""
    tokens: bool = False
    """Include the tokens of each answer."""
    notices: bool = False
    """Include notices, and what the agent added to messages."""
    is_redacted: bool = True
    """Whether secrets were removed; documents state it."""
    templates: Path | None = None
    """A folder with templates that replace the built-in ones."""


class Format(NamedTuple):
    """An export format. Its module is imported when the format is used."""

    description: str
    suffix: str
    function: str
    """`module:function` below `retold.export`. The function yields a file in pieces, so that no whole file is in memory."""
    holds_many: bool = False
    """Whether a file holds several conversations."""
    is_binary: bool = False

    def encode(self, sessions: Iterable[ExportSession], options: ExportOptions) -> Iterator[bytes]:
        """Yield a file, piece by piece."""
        module, _, function = self.function.partition(":")
        pieces: Iterator[bytes] = getattr(import_module(f"retold.export.{module}"), function)(
            sessions, options
        )
        return pieces

    def encode_index(
        self, entries: Iterable[tuple[str, Session]], options: ExportOptions
    ) -> Iterator[bytes] | None:
        """Yield a page that links to files, given their names and sessions; None for a format without such a page."""
        module = import_module(f"retold.export.{self.function.partition(':')[0]}")
        pieces: Iterator[bytes] | None = (
            module.encode_index(entries, options) if hasattr(module, "encode_index") else None
        )
        return pieces


FORMATS = {
    "md": Format(
        "Markdown to read and to paste; `retold read` reads it back",
        ".md",
        "formats.markdown:encode_sessions",
    ),
    "html": Format("a page to read in a browser, by itself", ".html", "html.page:encode_sessions"),
    "json": Format("a session as `retold show --json` prints it", ".json", "formats.jsonl:encode_json"),
    "jsonl": Format(
        "events, one JSON object per line", ".jsonl", "formats.jsonl:encode_events", holds_many=True
    ),
    "share-md": Format(
        "Markdown as `/chat share` of Gemini CLI writes it", ".md", "formats.gemini_share:encode_markdown"
    ),
    "share-json": Format(
        "JSON as `/chat share` of Gemini CLI writes it", ".json", "formats.gemini_share:encode_json"
    ),
    "chat": Format(
        "chat messages with roles and tool calls, one conversation per line",
        ".jsonl",
        "formats.jsonl:encode_chat",
        holds_many=True,
    ),
    "csv": Format(
        "a row for each entry and tool call, safe for spreadsheets",
        ".csv",
        "formats.csv:encode_sessions",
        holds_many=True,
    ),
    "atif": Format(
        "a trajectory in the Agent Trajectory Interchange Format", ".json", "formats.atif:encode_sessions"
    ),
    "otel": Format(
        "OpenTelemetry GenAI spans, OTLP JSON", ".jsonl", "formats.otel:encode_sessions", holds_many=True
    ),
    "otel-proto": Format(
        "the same as Protocol Buffers",
        ".pb",
        "formats.otel_proto:encode_sessions",
        holds_many=True,
        is_binary=True,
    ),
}

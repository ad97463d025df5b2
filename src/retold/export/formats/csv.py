"""Sessions as CSV: a row for each entry of the timeline, followed by a row for each of its tool calls."""

from collections.abc import Iterable, Iterator
from typing import Any

from retold.export.formats.registry import ExportOptions, ExportSession
from retold.export.text.formatting import csv_cell, escape_formula
from retold.model.serialization import encode_tree, format_utc
from retold.model.session import Context, Entry, Event, Message, Session, Text, Thinking, ToolCall

_TEXTS = ("text", "arguments", "result")
_FIGURES = ("input", "cached", "cache_write", "output", "reasoning", "tool", "total")
HEADINGS = (
    "session", "seq", "at", "role", "event", "fate", "model", "call", "tool", "canonical", "status", "exit_code",
    *_TEXTS, *(f"{name}_length" for name in _TEXTS), *(f"{name}_tokens" for name in _FIGURES), "estimated", "cut",
)  # fmt: skip
LIMIT = 32_767
"""Characters that Excel takes into a cell, counted in UTF-16 code units."""
_END = "\r\n"  # of RFC 4180: cells hold lines of their own, so nothing is gained for `cut` and `awk` by a lone one

Row = dict[str, Any]


def encode_sessions(exports: Iterable[ExportSession], options: ExportOptions) -> Iterator[bytes]:
    """Yield the headings, and the rows of each session and of its subagents."""
    yield (",".join(HEADINGS) + _END).encode()
    for session in _sessions(exports):
        for seq, row in enumerate(_rows(session, options)):
            yield _line({"session": session.key, "seq": seq, **row}).encode(errors="replace")


def _sessions(exports: Iterable[ExportSession]) -> Iterator[Session]:
    for export in exports:
        yield export.session
        yield from _sessions(export.subagents.values())


def _rows(session: Session, options: ExportOptions) -> Iterator[Row]:
    for entry in session.timeline:
        about = {"at": entry.at and format_utc(entry.at), "fate": entry.fate}
        yield {**about, **_entry(entry, options)}
        for part in entry.parts if isinstance(entry, Message) and options.tools != "none" else ():
            if isinstance(part, ToolCall):
                yield {**about, "role": "tool", **_call(part, options)}


def _entry(entry: Entry, options: ExportOptions) -> Row:
    if isinstance(entry, Event):
        return {"event": entry.kind, "text": entry.text}
    usage = entry.usage
    figures = {f"{name}_tokens": getattr(usage, name) for name in _FIGURES} if usage else {}
    estimated = usage.estimated if usage else None
    return {
        "role": entry.role,
        "model": entry.model,
        "text": _text(entry, options),
        **figures,
        "estimated": estimated,
    }


def _text(message: Message, options: ExportOptions) -> str:
    """Return the prompt of a message, else its texts."""
    if message.prompt is not None:
        return message.prompt
    kinds = (Text, Context, Thinking) if options.thoughts else (Text, Context)
    return "\n".join(part.text for part in message.parts if isinstance(part, kinds) and part.text)


def _call(call: ToolCall, options: ExportOptions) -> Row:
    at = {"at": format_utc(call.at)} if call.at else {}
    named = {"call": call.id, "tool": call.name, "canonical": call.canonical, "status": call.status}
    row: Row = {"exit_code": call.exit_code}
    if options.tools == "full":
        results = [text for text in (call.full_result or call.result, call.error) if text is not None]
        row["arguments"] = encode_tree(call.arguments).decode()
        row["result"] = "\n".join(results) if results else None
    return {**at, **named, **row}


def _line(row: Row) -> str:
    cut: list[str] = []
    for name in _TEXTS:
        text = row.get(name)
        if text is not None:
            row[f"{name}_length"] = len(text)
            safe = escape_formula(text)
            row[name] = _clip_cell(safe)
            cut += [name] if row[name] != safe else []
    row["cut"] = " ".join(cut)
    # Only texts can be formulas. NUL is written as its picture, since few readers of CSV accept it.
    values = (
        escape_formula(value).replace("\x00", "\u2400") if isinstance(value, str) else value
        for value in map(row.get, HEADINGS)
    )
    return ",".join(map(csv_cell, values)) + _END


def _clip_cell(text: str) -> str:
    """Return as much of a text as fits into a cell."""
    if 2 * len(text) <= LIMIT:
        return text
    wide = text[:LIMIT].encode("utf-16-le", errors="replace")
    if len(wide) <= 2 * LIMIT:
        return text[:LIMIT]
    return wide[: 2 * LIMIT].decode("utf-16-le", errors="ignore")

"""Sessions as CSV: a row for each entry of the timeline, and for each tool call behind the message that made it."""

from collections.abc import Iterable, Iterator
from typing import Any

from retold.export.formats.registry import ExportOptions, ExportSession
from retold.export.text.escape import cell, harmless
from retold.model.serialization import encoded, time_text
from retold.model.session import Context, Entry, Event, Message, Session, Text, Thinking, ToolCall

_TEXTS = ("text", "arguments", "result")
_FIGURES = ("input", "cached", "cache_write", "output", "reasoning", "tool", "total")
HEADINGS = (
    "session", "seq", "at", "role", "event", "fate", "model", "call", "tool", "canonical", "status", "exit_code",
    *_TEXTS, *(f"{name}_length" for name in _TEXTS), *(f"{name}_tokens" for name in _FIGURES), "estimated", "cut",
)  # fmt: skip
LIMIT = 32_767
"""How much Excel takes into a cell, counted as it counts: in halves of a surrogate pair."""
_END = "\r\n"  # of RFC 4180: cells hold lines of their own, so nothing is gained for `cut` and `awk` by a lone one

Row = dict[str, Any]


def pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield the headings, and the rows of each session and of its subagents."""
    yield (",".join(HEADINGS) + _END).encode()
    for session in _sessions(tellings):
        for seq, row in enumerate(_rows(session, choice)):
            yield _line({"session": session.key, "seq": seq, **row}).encode(errors="replace")


def _sessions(tellings: Iterable[ExportSession]) -> Iterator[Session]:
    for telling in tellings:
        yield telling.session
        yield from _sessions(telling.subagents.values())


def _rows(session: Session, choice: ExportOptions) -> Iterator[Row]:
    for entry in session.timeline:
        about = {"at": entry.at and time_text(entry.at), "fate": entry.fate}
        yield {**about, **_entry(entry, choice)}
        for part in entry.parts if isinstance(entry, Message) and choice.tools != "none" else ():
            if isinstance(part, ToolCall):
                yield {**about, "role": "tool", **_call(part, choice)}


def _entry(entry: Entry, choice: ExportOptions) -> Row:
    if isinstance(entry, Event):
        return {"event": entry.kind, "text": entry.text}
    usage = entry.usage
    figures = {f"{name}_tokens": getattr(usage, name) for name in _FIGURES} if usage else {}
    estimated = usage.estimated if usage else None
    return {
        "role": entry.role,
        "model": entry.model,
        "text": _text(entry, choice),
        **figures,
        "estimated": estimated,
    }


def _text(message: Message, choice: ExportOptions) -> str:
    """Return the human's own words, else all that the message says."""
    if message.prompt is not None:
        return message.prompt
    told = (Text, Context, Thinking) if choice.thoughts else (Text, Context)
    return "\n".join(part.text for part in message.parts if isinstance(part, told) and part.text)


def _call(call: ToolCall, choice: ExportOptions) -> Row:
    at = {"at": time_text(call.at)} if call.at else {}
    named = {"call": call.id, "tool": call.name, "canonical": call.canonical, "status": call.status}
    told: Row = {"exit_code": call.exit_code}
    if choice.tools == "full":
        results = [text for text in (call.full_result or call.result, call.error) if text is not None]
        told["arguments"] = encoded(call.arguments).decode()
        told["result"] = "\n".join(results) if results else None
    return {**at, **named, **told}


def _line(row: Row) -> str:
    cut: list[str] = []
    for name in _TEXTS:
        text = row.get(name)
        if text is not None:
            row[f"{name}_length"] = len(text)
            row[name] = _fitting(harmless(text))
            cut += [name] if row[name] != harmless(text) else []
    row["cut"] = " ".join(cut)
    return ",".join(cell(_safe(row.get(name))) for name in HEADINGS) + _END


def _safe(value: object) -> object:
    """Return a value that no reader of CSV stumbles over; only texts can be formulas."""
    return harmless(value).replace("\x00", "\u2400") if isinstance(value, str) else value


def _fitting(text: str) -> str:
    """Return as much of a text as a cell takes."""
    if 2 * len(text) <= LIMIT:
        return text
    wide = text[:LIMIT].encode("utf-16-le", errors="replace")
    if len(wide) <= 2 * LIMIT:
        return text[:LIMIT]
    return wide[: 2 * LIMIT].decode("utf-16-le", errors="ignore")

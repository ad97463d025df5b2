"""The files that Gemini CLI's `/chat share` writes, as far as a session has their content: turns with parts.

After `packages/cli/src/ui/utils/historyExportUtils.ts`, as it is in 0.61.0.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from retold.export.formats.registry import ExportOptions, ExportSession
from retold.model.serialization import allow_deep_values
from retold.model.session import Attachment, Context, Entry, Event, Message, Part, Session, Text, ToolCall

Turn = dict[str, Any]
_ENVIRONMENT = "<session_context>"
_FILE_MARKS = re.compile(
    r"(\n--- Content from referenced files ---|\nContent from @[^\n]*:\n|\n--- End of content ---)"
)
"""The CLI begins a new part at these marks when it appends the files that a prompt names."""


def history_turns(session: Session) -> Iterator[Turn]:
    """Yield the turns that the agent would still send: live messages, each followed by the results of its calls."""
    waiting: list[Turn] = []
    for entry in session.timeline:
        if entry.fate != "live":
            continue
        parts = list(_parts(entry))
        if isinstance(entry, Event):
            waiting += parts  # the environment stands in the turn of the first prompt
        elif parts or waiting:
            role = "model" if entry.role == "assistant" else "user"
            if role == "model" and waiting:
                yield {"role": "user", "parts": waiting}
                waiting = []
            if parts:
                yield {"role": role, "parts": [*waiting, *parts]}
                waiting = []
            results = list(_results(entry))
            if results:
                yield {"role": "user", "parts": results}
    if waiting:
        yield {"role": "user", "parts": waiting}


def _parts(entry: Entry) -> Iterator[Turn]:
    if isinstance(entry, Event):
        if entry.kind == "notice" and entry.text.startswith(_ENVIRONMENT):
            yield {"text": entry.text}
        return
    for part in entry.parts:
        yield from _part(part)


def _part(part: Part) -> Iterator[Turn]:
    match part:
        case Text(text) if text:
            yield {"text": text}
        case Context(kind="referenced_files", text=str(text)):
            yield from ({"text": piece} for piece in _FILE_MARKS.split(text) if piece)
        case Context(text=str(text)) if text:
            yield {"text": text}
        case ToolCall():
            yield {"functionCall": {"name": part.name, "args": part.arguments, "id": part.id}}
        case Attachment(data=str(data)):
            yield {"inlineData": {"mimeType": part.media_type, "data": data}}


def _results(message: Message) -> Iterator[Turn]:
    for part in message.parts:
        if isinstance(part, ToolCall) and (part.result is not None or part.error is not None):
            texts = {"output": part.result, "error": part.error}
            response = {name: text for name, text in texts.items() if text is not None}
            yield {"functionResponse": {"id": part.id, "name": part.name, "response": response}}
            yield from (piece for attached in part.attachments for piece in _part(attached))


def encode_json(exports: Iterable[ExportSession], options: ExportOptions) -> Iterator[bytes]:  # noqa: ARG001 - no option applies
    """Yield each session as `JSON.stringify(history, null, 2)` writes it."""
    for export in exports:
        before = "[\n"
        for turn in history_turns(export.session):
            with allow_deep_values():
                text = json.dumps(turn, ensure_ascii=False, indent=2)
            yield (before + "  " + text.replace("\n", "\n  ")).encode(errors="replace")
            before = ",\n"
        yield b"[]" if before == "[\n" else b"\n]"


_HEADINGS = {"user": "## USER \U0001f9d1\u200d\U0001f4bb", "model": "## MODEL \u2728"}
_BETWEEN = "\n\n---\n\n"
_LABELS = {"functionCall": "Command", "functionResponse": "Response"}


def encode_markdown(exports: Iterable[ExportSession], options: ExportOptions) -> Iterator[bytes]:  # noqa: ARG001 - no option applies
    """Yield the turns of each session; fences are not escaped, as in the CLI."""
    for export in exports:
        before = ""
        for turn in history_turns(export.session):
            words = "".join(map(_part_markdown, turn["parts"]))
            yield f"{before}{_HEADINGS[turn['role']]}\n\n{words}".encode(errors="replace")
            before = _BETWEEN


def _part_markdown(part: dict[str, Any]) -> str:
    for name, label in _LABELS.items():
        if name in part:
            with allow_deep_values():
                text = json.dumps(part[name], ensure_ascii=False, indent=2)
            return f"**Tool {label}**:\n```json\n{text}\n```"
    return str(part.get("text", ""))

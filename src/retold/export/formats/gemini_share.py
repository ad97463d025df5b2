"""The history that Gemini CLI's `/chat share` writes: turns with parts, as far as a session tells them.

After `packages/cli/src/ui/utils/historyExportUtils.ts`, as it is in 0.61.0.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from retold.export.formats.registry import ExportOptions, ExportSession
from retold.model.serialization import room_for_depth
from retold.model.session import Attachment, Context, Entry, Event, Message, Part, Session, Text, ToolCall

Turn = dict[str, Any]
_ENVIRONMENT = "<session_context>"
_FILE_MARKS = re.compile(
    r"(\n--- Content from referenced files ---|\nContent from @[^\n]*:\n|\n--- End of content ---)"
)
"""Where the CLI begins another part while it puts the files that a prompt names behind it."""


def turns(session: Session) -> Iterator[Turn]:
    """Yield what the agent would still send: each message of the live conversation, the results of its calls behind it."""
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
            told = {"output": part.result, "error": part.error}
            response = {name: text for name, text in told.items() if text is not None}
            yield {"functionResponse": {"id": part.id, "name": part.name, "response": response}}
            yield from (piece for attached in part.attachments for piece in _part(attached))


def share_json_pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:  # noqa: ARG001 - it has one look
    """Yield each session as one document, as `JSON.stringify(history, null, 2)` does."""
    for telling in tellings:
        before = "[\n"
        for turn in turns(telling.session):
            with room_for_depth():
                text = json.dumps(turn, ensure_ascii=False, indent=2)
            yield (before + "  " + text.replace("\n", "\n  ")).encode(errors="replace")
            before = ",\n"
        yield b"[]" if before == "[\n" else b"\n]"


_HEADINGS = {"user": "## USER \U0001f9d1\u200d\U0001f4bb", "model": "## MODEL \u2728"}
_BETWEEN = "\n\n---\n\n"
_LABELS = {"functionCall": "Command", "functionResponse": "Response"}


def share_md_pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:  # noqa: ARG001 - it has one look
    """Yield the turns of each session; its fences are as weak as those of the CLI."""
    for telling in tellings:
        before = ""
        for turn in turns(telling.session):
            words = "".join(map(_part_markdown, turn["parts"]))
            yield f"{before}{_HEADINGS[turn['role']]}\n\n{words}".encode(errors="replace")
            before = _BETWEEN


def _part_markdown(part: dict[str, Any]) -> str:
    for name, label in _LABELS.items():
        if name in part:
            with room_for_depth():
                told = json.dumps(part[name], ensure_ascii=False, indent=2)
            return f"**Tool {label}**:\n```json\n{told}\n```"
    text: str = part.get("text", "")
    return text

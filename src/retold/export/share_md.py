"""A session as Gemini CLI's `/chat share x.md` writes it."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from retold.export.share import turns
from retold.export.telling import ExportOptions, ExportSession
from retold.model.serialization import room_for_depth

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

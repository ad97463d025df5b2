"""`/chat share` as Markdown, read back into turns.

Blocks open with a heading (`## USER 🧑‍💻`; up to 0.20 `🧑‍💻 ## USER`) and are separated by a rule; tool parts are fenced
JSON behind a bold label. A text that itself contains such a heading behind a rule cannot be told from a block.
"""

import re
from collections.abc import Iterator
from typing import Any

from retold.reading.json_decode import Decoded, decode

_BLOCK = re.compile(r"(?:\A\ufeff?\s*|\n\n---\n\n)(?:## (USER|MODEL) \S+|\S+ ## (USER|MODEL))\n\n")
_TOOL = re.compile(r"\*\*Tool (Command|Response)\*\*:\n```json\n")
_FENCE = "\n```"


def turns(text: str) -> list[dict[str, Any]]:
    """Return the turns that were shared."""
    text = text.replace("\r\n", "\n")
    heads = list(_BLOCK.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
    return [
        {"role": (head[1] or head[2]).lower(), "parts": list(_parts(text[head.end() : end]))}
        for head, end in zip(heads, ends, strict=True)
    ]


def _parts(block: str) -> Iterator[dict[str, Any]]:
    position = 0
    while (match := _TOOL.search(block, position)) and (ends := block.find(_FENCE, match.end())) >= 0:
        yield from _text_part(block[position : match.start()])
        yield _tool(match[1], block[match.end() : ends], block[match.start() : ends + len(_FENCE)])
        position = ends + len(_FENCE)
    yield from _text_part(block[position:])


def _text_part(text: str) -> Iterator[dict[str, Any]]:
    if text.strip():
        yield {"text": text.strip("\n")}


def _tool(label: str, fenced: str, whole: str) -> dict[str, Any]:
    decoded = decode(fenced.encode(errors="replace"))
    if isinstance(decoded, Decoded) and type(decoded.value) is dict:
        return {"functionCall" if label == "Command" else "functionResponse": decoded.value}
    return {"text": whole}

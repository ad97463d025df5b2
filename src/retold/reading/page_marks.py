"""The marks in our Markdown pages: comments that nobody sees, which say what the lines behind them are."""

import json
from typing import Any

from retold.model.wire import encoded
from retold.reading.decoding import Decoded, decode

BEGIN, END = "<!-- retold ", " -->"
PAGE = 1
"""The version of the marks."""


def mark(tree: dict[str, Any]) -> str:
    """Return a mark, on one line, for every editor; nothing in it can end the comment."""
    data = encoded(tree)
    text = data.decode() if data.isascii() else json.dumps(tree, separators=(",", ":"))
    return BEGIN + text.replace("--", "-\\u002d") + END


def marked(line: str) -> dict[str, Any] | None:
    """Return what a mark says; None where a line is none."""
    if not line.startswith(BEGIN) or not line.rstrip().endswith(END):
        return None
    found = decode(line.rstrip()[len(BEGIN) : -len(END)].encode(errors="replace"))
    return found.value if isinstance(found, Decoded) and type(found.value) is dict else None

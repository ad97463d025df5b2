"""An export on stdout."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable

    from retold.cli.console import Console

STDOUT = "-"


def to_stdout(pieces: Iterable[bytes], console: Console) -> None:
    """Write a document as it is; on a terminal nothing in it is obeyed."""
    if console.out.isatty():
        text = b"".join(pieces).decode("utf-8", "replace")
        console.lines(text.removesuffix("\n").split("\n"))
        return
    console.out.flush()
    raw = console.out.buffer
    for piece in pieces:
        raw.write(piece)
    raw.flush()

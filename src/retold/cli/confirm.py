"""The question that a command asks before it changes something."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from retold.cli.console import Console


def is_confirmed(console: Console, question: str, *, yes: bool) -> bool:
    """Return whether the person agrees; `yes` is an agreement that the command line gives.

    Without a terminal nobody can answer, so nothing may change, and the console says so.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        console.tell(
            "retold: nothing was changed: there is no terminal to ask on; --yes agrees without a question"
        )
        return False
    console.err.write(f"{question} [y/N] ")
    console.err.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    console.tell("retold: nothing was changed")
    return False

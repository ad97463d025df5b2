"""A document of a conversation, made by another process: a long one takes many times the room that the server does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from threading import BoundedSemaphore

from retold.maintenance.invocation import own_command

AT_ONCE = 2
"""Documents that are made at the same time; whoever comes later waits."""
_PIECE = 65_536
_turns = BoundedSemaphore(AT_ONCE)


class Unfinished(Exception):  # noqa: N818 - it says what the document is
    """The document broke off: whoever gets it must not take it for whole."""


def exported(folder: str, key: str, options: Sequence[str]) -> Iterator[bytes]:
    """Yield what `retold export` writes for a session of the archive in a folder; it is ended if nobody wants it any more."""
    with _turns:
        process = subprocess.Popen(  # noqa: S603 - ourselves
            [*own_command(), "export", *options, "--", key],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "RETOLD_HOME": folder},
        )
        with process:
            try:
                while process.stdout is not None and (piece := process.stdout.read(_PIECE)):
                    yield piece
            finally:
                if process.poll() is None:
                    process.terminate()
        if process.returncode != 0:
            raise Unfinished(f"retold export ended with {process.returncode}")

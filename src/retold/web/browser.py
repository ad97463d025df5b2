"""The user's own browser, led to a link that nobody else gets in by."""

import atexit
import os
import tempfile
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path

_LASTS = 60


def open_link(link: str, *, is_safe_to_tell: bool) -> bool:
    """Open a link; tell whether a browser was found.

    Every user of a machine can see with what a program was started. Where the server cannot tell its visitors apart, the
    browser is started with a file that only its owner can read, and which leads on; a browser that was packed by itself
    (snap, flatpak) could not read that.
    """
    if is_safe_to_tell:
        return webbrowser.open(link)
    with _leading_to(link) as file:
        is_opened = webbrowser.open(file.as_uri())
        if is_opened:
            time.sleep(_LASTS)
    return is_opened


@contextmanager
def _leading_to(link: str) -> Iterator[Path]:
    """Make a page that leads on; it is gone when the link does not work any more, or the process ends."""
    handle, name = tempfile.mkstemp(prefix="retold-", suffix=".html")  # owner-only from the start
    atexit.register(_remove, name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(link)}"><title>retold</title>\n'
        )
    try:
        yield Path(name)
    finally:
        _remove(name)
        atexit.unregister(_remove)


def _remove(name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name)

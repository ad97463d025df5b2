"""The user's own browser, led to a link that nobody else gets to see."""

import os
import tempfile
import time
import webbrowser
from html import escape
from pathlib import Path

_LASTS = 60


def open_link(link: str) -> bool:
    """Open a link; tell whether a browser was found.

    Every user of a machine can see with what a program was started: the browser is started with a file that only its
    owner can read, and which leads on. It is gone when the link does not work any more.
    """
    handle, name = tempfile.mkstemp(prefix="retold-", suffix=".html")  # owner-only from the start
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(link)}"><title>retold</title>\n'
        )
    try:
        is_opened = webbrowser.open(Path(name).as_uri())
        if is_opened:
            time.sleep(_LASTS)
    finally:
        os.unlink(name)
    return is_opened

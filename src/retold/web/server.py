"""The page, served: on a port of this machine, for as long as the command runs."""

from __future__ import annotations

import atexit
import os
import socket
import tempfile
import time
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path

import msgspec

from retold.server import LOOPBACK, HostNames, LoopbackServer, bound
from retold.web.app import application
from retold.web.auth import ENTER, LoginTokens
from retold.web.page import PageRoute
from retold.web.pages import PAGES
from retold.web.templating import address


class PageAddress(msgspec.Struct, frozen=True):
    """Where the page is to be."""

    folder: str
    """Of the archive."""
    host: str = "127.0.0.1"
    port: int = 0
    """0 is any that is free."""
    token: str | None = None
    names: tuple[str, ...] = ()
    """Further names under which browsers may call this server."""

    @property
    def is_open(self) -> bool:
        """Whether other machines can reach it."""
        return self.host not in LOOPBACK


class Web:
    """A server that is about to run."""

    def __init__(self, place: PageAddress, pages: Sequence[PageRoute] = PAGES) -> None:
        """Take a port; raises OSError if that cannot be had."""
        self._place = place
        taken = bound(place.host, place.port)
        self.port: int = taken.getsockname()[1]
        self.entrance = LoginTokens(self.port, place.token)
        names = HostNames(self.port, place.names, place.is_open)
        app = application(place.folder, self.entrance, names, pages)
        self._server = LoopbackServer(app, taken)

    def link(self) -> str:
        """Return a new link that works once, within a minute."""
        return f"http://{_named(self._place.host)}:{self.port}{address(ENTER, key=self.entrance.link_key())}"

    def front(self) -> str:
        """Return the address without a key, for those who know the token."""
        return f"http://{_named(_reached(self._place.host))}:{self.port}{ENTER}"

    def run(self, begun: Callable[[], None]) -> None:
        """Serve until the process is told to end; `begun` is called once the port answers."""
        self._server.run(begun)

    def end(self) -> None:
        """End it from another thread."""
        self._server.end()


def _reached(host: str) -> str:
    """Return an address under which others reach what listens at all of them."""
    if host not in ("0.0.0.0", "::", ""):  # noqa: S104 - what the person gave
        return host
    with suppress(OSError):
        found = [str(place[0]) for *_, place in socket.getaddrinfo(socket.gethostname(), None)]
        return next((one for one in found if not one.startswith(("127.", "::1", "fe80"))), host)
    return host


def _named(host: str) -> str:
    return f"[{host}]" if ":" in host else host


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

"""The server of the local page, its links, and the browser that opens them."""

from __future__ import annotations

import atexit
import os
import socket
import tempfile
import time
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path

import msgspec

from retold.server import LOOPBACK, HostNames, LoopbackServer, bind_socket
from retold.web.app import application
from retold.web.auth import ENTER, LoginTokens
from retold.web.pages import PAGES
from retold.web.templating import PageRoute, address


class PageAddress(msgspec.Struct, frozen=True):
    """The archive that is served, and the address of the server."""

    folder: str
    """The folder of the archive."""
    host: str = "127.0.0.1"
    port: int = 0
    """0 is any free port."""
    token: str | None = None
    names: tuple[str, ...] = ()
    """Further names by which browsers may call the server."""

    @property
    def is_open(self) -> bool:
        """Whether other machines can reach the server."""
        return self.host not in LOOPBACK


class WebServer(LoopbackServer):
    """The local page on a port. The socket is bound at once, and `run` serves it."""

    def __init__(self, place: PageAddress, pages: Sequence[PageRoute] = PAGES) -> None:
        """Bind the port; raises OSError if it cannot be had."""
        self._place = place
        bound = bind_socket(place.host, place.port)
        self.port: int = bound.getsockname()[1]
        self.login_tokens = LoginTokens(self.port, place.token)
        names = HostNames(self.port, place.names, place.is_open)
        app = application(place.folder, self.login_tokens, names, pages)
        super().__init__(app, bound)

    def create_link(self) -> str:
        """Return a new link, which works once within a minute."""
        path = address(ENTER, key=self.login_tokens.create_link_key())
        return f"http://{_bracketed(self._place.host)}:{self.port}{path}"

    def login_address(self) -> str:
        """Return the address at which visitors log in with the token."""
        return f"http://{_bracketed(_reachable_host(self._place.host))}:{self.port}{ENTER}"


def _reachable_host(host: str) -> str:
    """Return an address at which other machines reach a server that listens on all addresses."""
    if host not in ("0.0.0.0", "::", ""):  # noqa: S104 - the person's own choice
        return host
    with suppress(OSError):
        found = [str(place[0]) for *_, place in socket.getaddrinfo(socket.gethostname(), None)]
        return next((one for one in found if not one.startswith(("127.", "::1", "fe80"))), host)
    return host


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


_LASTS = 60
"""Seconds for which a file with the link stays."""


def open_link(link: str, *, is_safe_argument: bool) -> bool:
    """Open a link in the browser; return whether one was found.

    Every user of a machine can see the arguments of a process. If the server cannot tell its visitors apart, the browser is
    started with a file that only its owner can read and that redirects to the link. A browser in a sandbox (snap, flatpak)
    could not read the file, so it is not used otherwise.
    """
    if is_safe_argument:
        return webbrowser.open(link)
    with _redirect_file(link) as file:
        is_opened = webbrowser.open(file.as_uri())
        if is_opened:
            time.sleep(_LASTS)
    return is_opened


@contextmanager
def _redirect_file(link: str) -> Iterator[Path]:
    """Write a page that redirects to the link; it is removed when the link has expired or the process ends."""
    handle, name = tempfile.mkstemp(prefix="retold-", suffix=".html")  # readable by its owner alone
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

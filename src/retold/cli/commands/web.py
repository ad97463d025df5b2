"""`retold web`: the local page."""

from __future__ import annotations

import os
import sys

from retold.cli.archive import opened
from retold.config import retold_home

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.web.server import Web

TOKEN = "RETOLD_WEB_TOKEN"  # noqa: S105 - the name of a variable

_MOST_PORT = 65_535


def arguments(parser: ArgumentParser) -> None:
    """Add what `web` understands."""
    parser.description = (
        "The page is for this machine alone, and for whoever has the link, which works once within a minute."
        " Press Enter for another link, Ctrl-C to end."
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="an address of this machine; 127.0.0.1 if not told"
    )
    parser.add_argument("--port", type=_port, default=0, help="port number (default: any free port)")
    parser.add_argument(
        "--token",
        metavar="TEXT",
        help=f"what visitors from other machines must type, at least 16 characters; better in {TOKEN}, where others do not see it",
    )
    parser.add_argument(
        "--name", action="append", default=[], metavar="HOST", help="a further name of this machine"
    )
    parser.add_argument("--no-browser", action="store_true", help="only tell the link")
    parser.add_argument("--no-watch", action="store_true", help="do not follow what agents write meanwhile")


def _port(text: str) -> int:
    from argparse import ArgumentTypeError

    if not (
        text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST_PORT)) and int(text) <= _MOST_PORT
    ):
        raise ArgumentTypeError(f"{text!r} is no port: write a number from 0 to {_MOST_PORT}")
    return int(text)


def run(options: Namespace, console: Console) -> int:
    """Serve until Ctrl-C; 2 if others could come in without a token."""
    from contextlib import nullcontext

    from retold.server import weakness
    from retold.web.background import watching
    from retold.web.server import PageAddress, Web

    token = options.token or os.environ.get(TOKEN) or None
    place = PageAddress(retold_home(os.environ), options.host, options.port, token, tuple(options.name))
    if place.is_open and not token:
        console.tell(
            f"retold: {options.host} can be reached from other machines: give --token, or {TOKEN}, as well"
        )
        return 2
    if place.is_open and token and (weak := weakness(token)):
        console.tell(f"retold: other machines can reach the page, and the token is {weak}")
        return 2
    opened(console).connection.close()
    web = Web(place)
    with nullcontext() if options.no_watch else watching(os.environ):
        web.run(lambda: _begin(web, console, has_browser=not options.no_browser, is_open=place.is_open))
    return 0


def _begin(web: Web, console: Console, *, has_browser: bool, is_open: bool) -> None:
    """Tell the link, open it, and tell another whenever Enter is pressed."""
    from threading import Thread

    if is_open:
        console.tell(f"retold: {web.front()} (not encrypted: only where you trust the network)")
        return
    _tell_link(web, console)
    if has_browser:
        from retold.web.auth import is_told
        from retold.web.server import open_link

        safe = {"is_safe_to_tell": is_told(web.port)}
        Thread(target=open_link, args=(web.link(),), kwargs=safe, daemon=True).start()
    if sys.stdin.isatty():
        Thread(target=_answer_enter, args=(web, console), daemon=True).start()


def _tell_link(web: Web, console: Console) -> None:
    console.line(web.link())
    console.tell("retold: this link works once, within a minute; Enter tells another, Ctrl-C ends")
    console.out.flush()


def _answer_enter(web: Web, console: Console) -> None:
    while sys.stdin.readline():
        _tell_link(web, console)

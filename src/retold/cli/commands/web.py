"""`retold web`: the pages in a browser, from a server on this machine."""

from __future__ import annotations

import os
import sys

from retold.cli.archive import open_archive
from retold.config import retold_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.web.server import WebServer

TOKEN = "RETOLD_WEB_TOKEN"  # noqa: S105 - the name of a variable

_MOST_PORT = 65_535


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `web`."""
    parser.description = (
        "Only this computer can reach the page. The sign-in link is valid once, for one minute."
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
    """Serve until Ctrl-C; 2 if other machines can reach the port and the token is missing or weak."""
    from contextlib import nullcontext

    from retold.server import token_weakness
    from retold.web.background import run_watcher
    from retold.web.server import PageAddress, WebServer

    token = options.token or os.environ.get(TOKEN) or None
    address = PageAddress(retold_home(os.environ), options.host, options.port, token, tuple(options.name))
    if address.is_open and not token:
        console.notice(
            f"retold: {options.host} can be reached from other machines: give --token, or {TOKEN}, as well"
        )
        return 2
    if address.is_open and token and (weak := token_weakness(token)):
        console.notice(f"retold: other machines can reach the page, and the token is {weak}")
        return 2
    open_archive(console).connection.close()
    web = WebServer(address)
    with nullcontext() if options.no_watch else run_watcher(os.environ):
        web.run(lambda: _announce(web, console, has_browser=not options.no_browser, is_open=address.is_open))
    return 0


def _announce(web: WebServer, console: Console, *, has_browser: bool, is_open: bool) -> None:
    """Print the link, open it in a browser, and print another one at each Enter."""
    from threading import Thread

    if is_open:
        console.notice(f"retold: {web.login_address()} (not encrypted: only where you trust the network)")
        return
    _print_link(web, console)
    if has_browser:
        from retold.web.auth import has_socket_owners
        from retold.web.server import open_link

        safe = {"is_safe_argument": has_socket_owners(web.port)}
        Thread(target=open_link, args=(web.create_link(),), kwargs=safe, daemon=True).start()
    if sys.stdin.isatty():
        Thread(target=_answer_enter, args=(web, console), daemon=True).start()


def _print_link(web: WebServer, console: Console) -> None:
    console.write_line(web.create_link())
    console.notice("retold: this link works once, within a minute; Enter tells another, Ctrl-C ends")
    console.out.flush()


def _answer_enter(web: WebServer, console: Console) -> None:
    while sys.stdin.readline():
        _print_link(web, console)

"""`retold mcp`: the MCP server, on stdin and stdout or over HTTP."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from mcp.server.lowlevel import Server

    from retold.cli.console import Console
    from retold.mcp.service import QueryService

SCOPES = ("project", "all")
TOKEN = "RETOLD_MCP_TOKEN"  # noqa: S105 - the name of a variable
_MOST_PORT = 65_535
_INTERRUPTED = 130


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `mcp`."""
    parser.description = (
        "Serve the history to agents over stdin and stdout with the Model Context Protocol. Agents start this server"
        " themselves, see `retold connect`. With --http it listens on 127.0.0.1 instead, prints its address to stdout, and"
        f" answers requests with `Authorization: Bearer TOKEN`: the token in {TOKEN}, or a new one, printed to stderr."
    )
    parser.add_argument(
        "--scope",
        choices=SCOPES,
        default=SCOPES[0],
        help="the widest that is given: the project of the folder it is started in (the usual), or all",
    )
    parser.add_argument("--no-redact", action="store_true", help="leave secrets in what is quoted")
    parser.add_argument("--http", action="store_true", help="over HTTP, until Ctrl-C")
    parser.add_argument(
        "--port", type=int, default=0, help="with --http: port number (default: any free port)"
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="with --http: write the token to a file that only you can read, and do not tell it",
    )


def run(options: Namespace, console: Console) -> int:
    """Serve until the client closes the connection, or until Ctrl-C; 2 for wrong options."""
    error = _find_misuse(options)
    if error:
        console.notice(f"retold: {error}")
        return 2
    from retold.config import retold_home
    from retold.mcp.service import QueryService, ServerSettings

    here, named = os.getcwd(), os.environ.get("PWD")
    service = QueryService(
        ServerSettings(retold_home(os.environ), here, options.scope == "all", not options.no_redact, named)
    )
    service.prepare()  # in a thread, during the imports below
    try:
        code = _serve(service, options, console)
    finally:
        is_done = service.close()
    if not is_done:  # a thread still runs a query whose answer nobody waits for
        console.close()
        os._exit(code)
    return code


def _find_misuse(options: Namespace) -> str | None:
    token = os.environ.get(TOKEN) or None
    if not options.http:
        is_for_http = options.port or options.token_file
        return "--port and --token-file are for --http" if is_for_http else None
    if not 0 <= options.port <= _MOST_PORT:
        return f"{options.port} is no port: they go up to {_MOST_PORT}"
    if token is not None and not (token.isascii() and token.isprintable() and len(token.split()) == 1):
        return f"{TOKEN} is no token: it must be letters, digits and signs without spaces"
    return None


def _serve(service: QueryService, options: Namespace, console: Console) -> int:
    import logging

    from retold.cli.main import write_crash_log
    from retold.mcp.server import make_server

    logging.getLogger().addHandler(logging.NullHandler())  # log records may contain what clients send
    server = make_server(service, write_crash_log)
    if options.http:
        return _serve_http(server, options, console)
    from retold.mcp.stdio import serve_stdio

    if sys.stdin.isatty():
        console.notice(
            "retold: waiting for an agent to speak; `retold connect` lets one start this; Ctrl-D ends"
        )
    import signal

    return _INTERRUPTED if serve_stdio(server) == signal.SIGINT else 0


def _serve_http(server: Server[Any], options: Namespace, console: Console) -> int:
    from secrets import token_urlsafe

    from retold.mcp.http import McpHttpServer
    from retold.server import token_weakness

    chosen = os.environ.get(TOKEN)
    if chosen and (weak := token_weakness(chosen)):
        console.notice(f"retold: {TOKEN} is {weak}")
        return 2
    token = chosen or token_urlsafe(32)
    http = McpHttpServer(server, options.port, token)
    if options.token_file:
        _write_token(token, options.token_file)

    def begin() -> None:
        console.write_line(http.address)
        console.out.flush()
        if options.token_file:
            console.notice(f"retold: the token is in {options.token_file}; Ctrl-C ends")
        else:
            shown = f"that of {TOKEN}" if chosen else token
            console.notice(f"retold: the token is {shown}; Ctrl-C ends")

    http.run(begin)
    return 0


def _write_token(token: str, path: str) -> None:
    """Write a token to a new file that only its owner can read, and put that in the place of the old file."""
    draft = f"{path}.{os.getpid()}.new"
    with os.fdopen(
        os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(f"{token}\n")
    os.replace(draft, path)

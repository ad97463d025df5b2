"""The `retold` command: parses the command line, runs a command, and returns the exit code."""

from __future__ import annotations

import gc
import os
import sys

from retold import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, HelpFormatter, Namespace
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from retold.cli.console import Console


COMMANDS = {
    "sync": "bring the archive up to date with what your agents have kept",
    "list": "one row per conversation, newest first",
    "search": "find what was said",
    "browse": "look through all conversations in the terminal: find, read, export, resume, restore",
    "show": "the transcript of a conversation",
    "events": "tell a conversation, or files, as normalised events",
    "watch": "follow what your agents write, archive it, and tell it as it comes",
    "web": "a page in your browser: look, search, read, and what it cost",
    "mcp": "the history as tools for agents: search, read, what was fixed, what was decided",
    "projects": "projects, their roots, and how they are known",
    "brief": "what a project comes to: sessions, decisions, fixes, files, open ends",
    "stats": "what it cost and how it went: tokens, money, tools, errors, time",
    "sql": "ask the archive in SQL: documented views, read only",
    "export": "conversations as files, for people and for programs, without secrets",
    "doctor": "what is at risk, what is lost, and what mends it",
    "keep": "archive by itself: hooks in your agents, and a timer",
    "connect": "set an agent up to ask what was said before",
    "restore": "write a conversation back, so that its agent lists and resumes it",
    "resume": "the command to go on with a conversation, or do it",
    "name": "give a conversation a title of your own",
    "tag": "tag a conversation",
    "forget": "remove a conversation from the archive for good",
    "import": "merge the archive of another machine, or another person, into yours",
    "read": "read transcript files as they are, without an archive",
    "demo": "make a home with weeks of invented work, to try everything on",
}
DEFAULT = "default"
"""The command that runs for `retold` alone."""
PLAIN = {"list": (0, 0), "search": (1, 100), "sql": (0, 1), "stats": (0, 0), "sync": (0, 0)}
"""Commands that are mostly typed with `--json` as their only option, and how many words follow, at least and at most.

These are parsed without argparse, whose import takes half as long as a list.
"""
EXIT_BUG, EXIT_MACHINE, EXIT_INTERRUPTED = 3, 4, 130


def command() -> int:
    """Run the command of this process; the entry point of the package."""
    gc.set_threshold(50_000)  # collecting garbage while modules are imported takes a millisecond
    code = main()
    gc.freeze()  # without this the last garbage collection takes 4 ms
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given in (["--version"], ["-V"]):
        sys.stdout.write(f"retold {__version__}\n")
        return 0
    from retold.cli.console import Console

    for closed in ("stdout", "stderr"):
        if getattr(sys, closed) is None:  # the caller closed it
            setattr(sys, closed, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open until the process ends
    name, options = _parse(given) if given else (DEFAULT, None)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")  # type: ignore[union-attr]
    return _run(name, options, Console(os.environ))


class PlainOptions:
    """The options of a command that was typed without options other than `--json`: all others are None."""

    def __init__(self, query: Sequence[str] | str | None, *, json: bool) -> None:
        self.query, self.json = query, json

    def __getattr__(self, name: str) -> None:
        return None


def _parse_plain(name: str, typed: Sequence[str]) -> PlainOptions | None:
    """Return the options of a plain command; None for one that argparse must parse, or refuse."""
    words, least, most = list(typed), *PLAIN.get(name, (1, 0))
    has_json = words[:1] == ["--json"] or (words[-1:] == ["--json"] and "--" not in words)
    if has_json:
        words.remove("--json")
    if words[:1] == ["--"]:
        words.pop(0)
        is_plain = "--" not in words
    else:
        is_plain = not any([word.startswith("-") for word in words])
    if not is_plain or not least <= len(words) <= most:
        return None
    return PlainOptions(words if most > 1 else next(iter(words), None), json=has_json)


def _parse(given: Sequence[str]) -> tuple[str, Namespace | PlainOptions]:
    name, *typed = given
    plain = _parse_plain(name, typed)
    return _parse_with_argparse(name, typed) if plain is None else (name, plain)


def _parse_with_argparse(name: str, typed: Sequence[str]) -> tuple[str, Namespace]:
    """Return the command and its options; only the parser of this command is made."""
    import argparse

    # Python has no translations of these messages, and looking for them takes as long as parsing.
    argparse._ = lambda text: text  # type: ignore[attr-defined]
    if name not in COMMANDS:
        options = _main_parser().parse_args([name, *typed])
        return options.command, options
    description = COMMANDS[name]
    parser = _new_parser(f"retold {name}", f"{description[0].upper()}{description[1:]}.")
    command = _import_command(name)
    command.add_arguments(parser)
    if hasattr(command, "escape_dashes"):
        typed = command.escape_dashes(typed)
    return name, parser.parse_args(typed)


def _new_parser(prog: str, description: str) -> ArgumentParser:
    """Return a parser whose messages escape what was typed, so that it cannot control the terminal."""
    from argparse import ArgumentParser

    from retold.cli.console import escape_for_terminal

    class Parser(ArgumentParser):
        def error(self, message: str) -> NoReturn:
            super().error(escape_for_terminal(message))

    return Parser(prog=prog, description=description, formatter_class=_formatter)


def _main_parser() -> ArgumentParser:
    """Return the parser that knows the names of all commands, without their options."""
    parser = _new_parser(
        "retold",
        "Keep, find and retell the conversations you had with your coding agents. Without a command:"
        " bring the archive up to date and show the newest sessions.",
    )
    parser.add_argument("-V", "--version", action="version", version=f"retold {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command, text in COMMANDS.items():
        commands.add_parser(command, help=text)
    return parser


def _formatter(prog: str) -> HelpFormatter:
    """Return the formatter of help texts; with a given width argparse does not import `shutil`."""
    from argparse import HelpFormatter

    from retold.cli.console import terminal_columns

    return HelpFormatter(prog, width=terminal_columns(os.environ, sys.stdout) - 2)


def _import_command(name: str) -> Any:
    """Return the module of a command; `importlib` would import `warnings`, too."""
    module = f"retold.cli.commands.{name}"
    __import__(module)
    return sys.modules[module]


def _run(name: str, options: object, console: Console) -> int:
    try:
        code: int = _import_command(name).run(options, console)
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        code = 0
    except Exception as error:  # noqa: BLE001 - the only handler of errors and bugs
        code = _report_error(error, console)
    console.close()
    return code


def _report_error(error: Exception, console: Console) -> int:
    """Print an error of the machine, damage of the archive, or a bug of retold; return the exit code."""
    from retold.archive.database import RetoldError

    if isinstance(error, OSError | RetoldError):
        console.notice(f"retold: {error}")
        return EXIT_MACHINE
    if isinstance(error, ImportError):
        from retold.extras import explain_missing

        if (explained := explain_missing(error)) is not None:
            console.notice(f"retold: {explained}")
            return EXIT_MACHINE
    from retold.archive.examination import find_damage
    from retold.config import retold_home

    if (fault := find_damage(retold_home(os.environ))) is not None:
        console.notice(f"retold: {fault}")
        return EXIT_MACHINE
    console.notice(f"retold: internal error: {type(error).__name__}: {error} (log: {write_crash_log(error)})")
    return EXIT_BUG


def write_crash_log(error: BaseException) -> str:
    """Write a traceback to a log and return its path; if the log cannot be written, print the traceback on stderr."""
    import platform
    import traceback
    from datetime import UTC, datetime

    from retold.config import retold_home

    head = f"retold {__version__}, Python {platform.python_version()} on {sys.platform}"
    text = f"{head}\n\n{''.join(traceback.format_exception(error))}"
    folder = os.path.join(retold_home(os.environ), "logs")
    path = os.path.join(folder, f"crash-{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}.log")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as log:
            log.write(text)
    except OSError:
        sys.stderr.write(text)
        return "not written"
    return path

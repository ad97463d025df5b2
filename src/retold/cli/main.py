"""The `retold` command: finds the asked-for command, runs it, and turns what happens into an exit code."""

from __future__ import annotations

import gc
import os
import platform
import sys
import traceback
from datetime import UTC, datetime

from retold import __version__

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from argparse import ArgumentParser, HelpFormatter, Namespace
    from collections.abc import Sequence

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
FRONT = "default"
"""What `retold` alone does."""
COMPLETE = ("list", "stats", "sync")
"""Commands that are mostly typed without any option; then nothing has to be parsed, nor argparse imported."""
EXIT_BUG, EXIT_MACHINE, EXIT_INTERRUPTED = 3, 4, 130


def command() -> int:
    """Run the command that was typed: what the shell calls."""
    code = main()
    gc.freeze()  # at the end of a process nothing has to be looked through for what can be freed: 4 ms
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given in (["--version"], ["-V"]):  # before anything is imported: start-up is a feature
        sys.stdout.write(f"retold {__version__}\n")
        return 0
    return _run(given)


def _run(given: list[str]) -> int:
    from retold.cli.console import Console

    for closed in ("stdout", "stderr"):
        if getattr(sys, closed) is None:  # by whoever called us: what is said goes nowhere
            setattr(sys, closed, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - until we end
    name, options = _asked(given) if given else (FRONT, None)
    for stream in (
        sys.stdout,
        sys.stderr,
    ):  # typed as any text stream, which may lack `reconfigure`; these have it
        stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")  # type: ignore[union-attr]
    return _guarded(name, options, Console(os.environ))


class Unasked:
    """The options of a command that was typed without any."""

    def __getattr__(self, name: str) -> None:
        return None


def _asked(given: Sequence[str]) -> tuple[str, Namespace | Unasked]:
    """Return the command and its options; of all parsers, only that of the command is made."""
    from importlib import import_module

    if len(given) == 1 and given[0] in COMPLETE:
        return given[0], Unasked()
    import argparse

    # Python comes without translations of these messages; to look for some takes as long as all our own parsing.
    argparse._ = lambda text: text  # type: ignore[attr-defined]
    name = given[0]
    if name not in COMMANDS:
        options = _front_parser().parse_args(given)
        return options.command, options
    from retold.cli.parser import Parser

    parser = Parser(prog=f"retold {name}", description=_sentence(COMMANDS[name]), formatter_class=_formatter)
    command = import_module(f"retold.cli.commands.{name}")
    command.arguments(parser)
    typed = list(given[1:])
    return name, parser.parse_args(command.as_words(typed) if hasattr(command, "as_words") else typed)


def _front_parser() -> ArgumentParser:
    """Return the parser that knows all commands by name, and nothing of their options."""
    from retold.cli.parser import Parser

    parser = Parser(
        prog="retold",
        formatter_class=_formatter,
        description="Keep, find and retell the conversations you had with your coding agents. Without a command:"
        " bring the archive up to date and show the newest sessions.",
    )
    parser.add_argument("-V", "--version", action="version", version=f"retold {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command, told in COMMANDS.items():
        commands.add_parser(command, help=told)
    return parser


def _formatter(prog: str) -> HelpFormatter:
    """Return what argparse lays help out with; told the width, it does not import `shutil` to find out."""
    from argparse import HelpFormatter

    from retold.cli.console import terminal_columns

    return HelpFormatter(prog, width=terminal_columns(os.environ, sys.stdout) - 2)


def _sentence(told: str) -> str:
    return told[0].upper() + told[1:] + "."


def _guarded(name: str, options: object, console: Console) -> int:
    from importlib import import_module

    try:
        code: int = import_module(f"retold.cli.commands.{name}").run(options, console)
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        code = 0
    except Exception as error:  # noqa: BLE001 - the one handler for what stops us, and for our own bugs
        code = _failed(error, console)
    console.close()
    return code


def _failed(error: Exception, console: Console) -> int:
    """Tell what has gone wrong: the machine, a damaged archive, or else a bug of retold."""
    from retold.archive.database import RetoldError

    if isinstance(error, OSError | RetoldError):
        console.tell(f"retold: {error}")
        return EXIT_MACHINE
    from retold.archive.examination import damage
    from retold.config import retold_home

    if (told := damage(retold_home(os.environ))) is not None:
        console.tell(f"retold: {told}")
        return EXIT_MACHINE

    console.tell(f"retold: a bug of ours: {type(error).__name__}: {error} (log: {crash_log(error)})")
    return EXIT_BUG


def crash_log(error: BaseException) -> str:
    """Write the log and return where it is; the traceback goes to stderr if it cannot be written."""
    from retold.config import retold_home

    told = "".join(traceback.format_exception(error))
    about = f"retold {__version__}, Python {platform.python_version()} on {sys.platform}\n\n{told}"
    folder = os.path.join(retold_home(os.environ), "logs")
    path = os.path.join(folder, f"crash-{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}.log")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as log:
            log.write(about)
    except OSError:
        sys.stderr.write(about)
        return "not written"
    return path

"""The `retold` command: finds the asked-for command, runs it, and turns what happens into an exit code."""

from __future__ import annotations

import os
import sys

from retold import __version__

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence

    from retold.cli.console import Console

COMMANDS = {
    "list": "one row per conversation, newest first",
    "show": "the transcript of a conversation",
    "projects": "projects, their roots, and how they are known",
    "read": "read transcript files as they are, without an archive",
    "events": "tell files as normalised events",
}
EXIT_BUG, EXIT_MACHINE, EXIT_INTERRUPTED = 3, 4, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given in (["--version"], ["-V"]):  # before anything is imported: start-up is a feature
        sys.stdout.write(f"retold {__version__}\n")
        return 0
    return _run(given)


def _run(given: list[str]) -> int:
    name = next((argument for argument in given if argument in COMMANDS), None)
    parser = _parser(name)
    options = parser.parse_args(given or ["--help"])
    from retold.cli.console import Console

    for stream in (
        sys.stdout,
        sys.stderr,
    ):  # typed as any text stream, which may lack `reconfigure`; these have it
        stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")  # type: ignore[union-attr]
    return _guarded(options.command, options, Console(os.environ))


def _parser(name: str | None) -> ArgumentParser:
    """Return the parser: every command by name, the chosen one with its options."""
    from argparse import ArgumentParser
    from importlib import import_module

    parser = ArgumentParser(
        prog="retold", description="Keep, find and retell the conversations you had with your coding agents."
    )
    parser.add_argument("-V", "--version", action="version", version=f"retold {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command, told in COMMANDS.items():
        own = commands.add_parser(command, help=told, description=told[0].upper() + told[1:] + ".")
        if command == name:
            import_module(f"retold.cli.commands.{command}").arguments(own)
    return parser


def _guarded(name: str, options: object, console: Console) -> int:
    from importlib import import_module

    try:
        code: int = import_module(f"retold.cli.commands.{name}").run(options, console)
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        code = 0
    except OSError as error:
        console.tell(f"retold: {error}")
        code = EXIT_MACHINE
    except Exception as error:  # noqa: BLE001 - the one handler for our own bugs
        from retold.cli.crash import crash_log

        console.tell(f"retold: a bug of ours: {type(error).__name__}: {error} (log: {crash_log(error)})")
        code = EXIT_BUG
    console.close()
    return code

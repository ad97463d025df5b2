"""`retold demo`: a home with invented conversations, to try every command on."""

import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path

from retold.cli.console import Console
from retold.config import retold_home

OVERRIDES = ("GEMINI_SESSIONS_DIR", "CLAUDE_PROJECTS_DIR", "CODEX_SESSIONS_DIR")
"""Variables that override those of the homes: with one of them, the demo would be mixed with the person's own sessions."""
EXAMPLES = (
    ("retold list", "a month of work, whatever the agent"),
    ('retold search "time zone bug"', "what was said about it, and where"),
    ("retold stats", "what it cost, and how it went"),
    ("retold web", "all of it in your browser"),
    ("retold browse", "all of it in this terminal"),
    ("retold list --agent gemini --json", "the same for programs, with what is special about each"),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `demo`."""
    parser.add_argument(
        "folder",
        nargs="?",
        metavar="DIR",
        help="where to make it: a new or empty folder, or the folder of an earlier demo, which is replaced with its archive (default: a folder of retold's own)",
    )


def run(options: Namespace, console: Console) -> int:
    """Make the home and print the shell commands that select it; 1 if the folder holds something else."""
    from datetime import UTC, datetime

    from retold.demo.home import OccupiedError, demo_folder, make_home

    folder = Path(os.path.abspath(options.folder or demo_folder(Path(retold_home(os.environ)))))
    try:
        made = make_home(folder, datetime.now(UTC))
    except OccupiedError:
        console.notice(
            f"retold: {folder} holds something that `retold demo` did not make: choose another folder"
        )
        return 1
    for line in shell_lines(made.variables, os.environ, sys.platform):
        console.write_line(line)
    count = sum(made.conversations.values())
    again = f"retold demo {shlex.quote(options.folder)}" if options.folder else "retold demo"
    console.notice(
        f"Made {count} invented conversations of three agents in {made.projects} projects, in {folder}"
    )
    console.notice(
        f'To use them in this shell: eval "$({again})"; a new shell is back to your own. Then try:'
    )
    for command, text in EXAMPLES:
        console.notice(f"  {command:36}{text}")
    return 0


def shell_lines(variables: Mapping[str, str], env: Mapping[str, str], platform: str) -> Iterator[str]:
    """Yield the shell commands after which retold and the agents find the demo and nothing else."""
    is_windows = platform == "win32"
    for name in OVERRIDES:
        if name in env:
            yield f"set {name}=" if is_windows else f"unset {name}"
    for name, value in variables.items():
        yield f'set "{name}={value}"' if is_windows else f"export {name}={shlex.quote(value)}"

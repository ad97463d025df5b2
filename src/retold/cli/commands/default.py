"""`retold` without a command: a sync, and the newest sessions."""

from __future__ import annotations

import os

from retold.cli.progress import format_coverage, run_sync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from retold.archive.store import Store
    from retold.cli.console import Console


NEWEST = 20
HINTS = "Next: retold search WORDS, retold show ID, retold web, retold browse; all commands: retold --help"


def run(options: object, console: Console) -> int:  # noqa: ARG001 - as in every command
    """Bring the archive up to date and print the newest sessions."""
    from retold.archive.queries.listing import count_sessions
    from retold.archive.store import Store
    from retold.cli.commands.list import print_list
    from retold.config import retold_home
    from retold.search.filters import Filters

    coverage = run_sync(console)
    with Store(retold_home(os.environ)) as record:
        count = count_sessions(record)
        if not count:
            console.notice(format_coverage(coverage))
            console.notice(
                "retold: no sessions of Gemini CLI, Claude Code or Codex CLI were found here."
                ' `eval "$(retold demo)"` makes some up to try every command on;'
                " `retold sync --home DIR` reads a home from elsewhere."
            )
            return 0
        code = print_list(record, console, Filters(), NEWEST, every_kind=False)
        if count > NEWEST:
            console.notice(f"… and {count - NEWEST:,} more: retold list")
        for line in _warnings(record):
            console.notice(line)
    console.notice(format_coverage(coverage))
    console.notice(HINTS)
    return code


def _warnings(record: Store) -> Iterator[str]:
    """Yield a line for each agent that soon deletes some of the sessions."""
    from retold.agents import TITLES
    from retold.archive.sync_state import DAY, find_expiring

    for due in find_expiring(record):
        days = int(-(-due.seconds // DAY))
        when = "at its next start" if days <= 0 else f"within {days} day{'' if days == 1 else 's'}"
        them, are = ("it", "is") if due.count == 1 else ("they", "are")
        text = f"{TITLES.get(due.agent, due.agent)} deletes {due.count:,} of these {when}; {them} {are} archived."
        yield f"{text} `retold doctor` tells more."

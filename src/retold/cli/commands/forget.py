"""`retold forget`: gone from the archive for good."""

from __future__ import annotations

import os

from retold.cli.archive import no_such_session, session_argument

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.archive.record import Record
    from retold.cli.console import Console


def arguments(parser: ArgumentParser) -> None:
    """Add what `forget` understands."""
    session_argument(parser, nargs="?")
    parser.add_argument(
        "--project", metavar="X", help="every session of a project: a path, a hash, or part of its name"
    )
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be forgotten")


def run(options: Namespace, console: Console) -> int:
    """Forget; 1 if nothing is meant, 2 if it is not clear what."""
    from retold.archive.record import FORGETTING, Record
    from retold.ingest.forgetting import forget
    from retold.ingest.home import retold_home

    if (options.session is None) == (options.project is None):
        console.tell("retold: name either a SESSION or a --project to forget")
        return 2
    folder = retold_home(os.environ)
    with Record(folder) as record:
        keys = _meant(record, options, console)
        is_unfinished = record.fact(FORGETTING) is not None
    if isinstance(keys, int):
        if is_unfinished and not options.dry_run:  # this may be what an earlier one was to forget
            forget(folder, ())
            console.tell("retold: a forget that was stopped is finished now")
        return keys
    for key, title in keys:
        console.tell(f"{'would forget' if options.dry_run else 'forgetting'} {key}  {title or ''}")
    if not options.dry_run:
        count, is_clean = forget(folder, [key for key, _ in keys])
        console.tell(
            f"retold: {count} session{'' if count == 1 else 's'} forgotten, subagents included: gone from record, originals"
            " and index, and no sync brings them back. The agent's own files were not touched."
        )
        if not is_clean:
            console.tell(
                "retold: words may be left in logs beside the archive, because another retold reads it;"
                " the next sync removes them"
            )
    return 0


def _meant(record: Record, options: Namespace, console: Console) -> list[tuple[str, str | None]] | int:
    from retold.cli.project_names import project_finder
    from retold.query.listing import named, titled
    from retold.query.wanted import Wanted

    if options.session is not None:
        found = named(record, options.session)
        return found if len(found) == 1 else no_such_session(console, options.session, found)
    wanted = Wanted(find_project=project_finder(record, console))
    wanted.add("project", options.project)
    rows = titled(record, wanted)
    if not rows:
        console.tell(f"retold: no session of a project {options.project}")
        return 1
    return rows

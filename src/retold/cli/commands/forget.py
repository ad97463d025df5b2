"""`retold forget`: delete sessions from the archive for good."""

from __future__ import annotations

import os

from retold.cli.archive import no_such_session, session_argument

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Sequence

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.search.listing import Heading


def arguments(parser: ArgumentParser) -> None:
    """Add what `forget` understands."""
    parser.description = (
        "Delete sessions from the archive for good. The command lists them and asks before it deletes anything."
        " The agents' own files stay as they are."
    )
    session_argument(parser, nargs="?")
    parser.add_argument(
        "--project",
        metavar="X",
        help="every session of one project: a path, a hash, or its name; part of a name, if it matches one project only",
    )
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only list what would be forgotten")


def run(options: Namespace, console: Console) -> int:
    """Forget; 1 if nothing matches or nobody agrees, 2 if the command line is not clear."""
    from retold.archive.store import FORGETTING, Store
    from retold.cli.console import is_confirmed
    from retold.config import retold_home
    from retold.synchronization.user_changes import forget

    if (options.session is None) == (options.project is None):
        console.tell("retold: name either a SESSION or a --project to forget")
        return 2
    folder = retold_home(os.environ)
    with Store(folder) as record:
        found = _matches(record, options, console)
        is_unfinished = record.fact(FORGETTING) is not None
        if not isinstance(found, int):
            count = _list(record, found, console, "forgetting" if options.yes else "would forget")
    if isinstance(found, int):
        if is_unfinished and not options.dry_run:  # this may be what an earlier one was to forget
            forget(folder, ())
            console.tell("retold: a forget that was stopped is finished now")
        return found
    if options.dry_run:
        console.tell("retold: nothing was changed")
        return 0
    question = f"Delete {'it' if count == 1 else f'these {count}'} from the archive for good?"
    if not is_confirmed(console, question, yes=options.yes):
        return 1
    count, is_clean = forget(folder, [one.key for one in found])
    _tell_done(count, console, is_clean=is_clean)
    return 0


def _matches(record: Store, options: Namespace, console: Console) -> list[Heading] | int:
    """Return the sessions to forget, or the exit code where none match or the name is not clear."""
    from retold.search.listing import headings_of, named

    if options.project is not None:
        return _of_project(record, options.project, console)
    found = named(record, options.session)
    if len(found) != 1:
        return no_such_session(console, options.session, found)
    return headings_of(record, [key for key, _ in found])


def _of_project(record: Store, text: str, console: Console) -> list[Heading] | int:
    """Return the sessions of the one project that a text names; an exact name wins over a part of a name."""
    from retold.cli.project_names import project_finder
    from retold.search.filters import Filters
    from retold.search.listing import headings

    wanted = Filters(find_project=project_finder(record, console))
    wanted.add("project", text)
    rows = headings(record, wanted)
    if not rows:
        console.tell(f"retold: no session of a project {text}")
        return 1
    projects: dict[str, list[Heading]] = {}
    for one in rows:
        projects.setdefault(one.project, []).append(one)
    exact = [found for found in projects.values() if _is_exact(found, text)]
    chosen = exact or list(projects.values())
    if len(chosen) == 1:
        return chosen[0]
    console.tell(f"retold: {text} may mean any of {len(chosen)} projects; name one by its path or hash:")
    for found in sorted(chosen, key=_place):
        console.tell(f"  {_place(found)}  ({_sessions(len(found))} in all)")
    return 2


def _is_exact(found: Iterable[Heading], text: str) -> bool:
    """Return whether a text is the path, the hash or the whole name of a project, in any case."""
    from retold.projects.matching import is_path, last_name

    name = text.rstrip("/\\").casefold()
    return is_path(text) or any(
        name in (last_name(one.root or "").casefold(), (one.native_key or "").casefold())
        or text in (one.root, one.hash, (one.hash or "")[:8])
        for one in found
    )


def _place(found: Sequence[Heading]) -> str:
    """Return what names a project best: its folder, else its hash, else the agent's own name for it."""
    roots = (one.root or one.hash or one.native_key for one in found)
    return next((place for place in roots if place), "(no project)")


def _list(record: Store, found: Sequence[Heading], console: Console, verb: str) -> int:
    """List what goes, with subagents counted; return how many sessions that is."""
    from retold.archive.queries.lookups import family
    from retold.export.text.table import project_name
    from retold.export.text.times import day
    from retold.search.dates import moment_of

    count = len({number for one in found for number in family(record, one.key)})
    for one in found:
        ended_at = moment_of(one.ended_at)
        ended_on = day(ended_at) if ended_at else "-"
        project = project_name(one.root, one.hash, one.native_key)
        console.tell(f"{verb} {one.key}  {ended_on}  {project}  {one.title or '(no title)'}")
    subagents = count - len(found)
    more = f", {subagents} of them subagent{'' if subagents == 1 else 's'}" if subagents else ""
    console.tell(f"retold: {_sessions(count)} in all{more}")
    return count


def _sessions(count: int) -> str:
    return f"{count} session{'' if count == 1 else 's'}"


def _tell_done(count: int, console: Console, *, is_clean: bool) -> None:
    console.tell(
        f"retold: {_sessions(count)} forgotten, subagents included: gone from record, originals"
        " and index, and no sync brings them back. The agent's own files were not touched."
    )
    if not is_clean:
        console.tell(
            "retold: words may be left in logs beside the archive, because another retold reads it;"
            " the next sync removes them"
        )

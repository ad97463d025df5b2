"""`retold forget`: delete sessions from the archive for good."""

from __future__ import annotations

import os

from retold.cli.archive import add_session_argument, resolve_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Sequence

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.search.listing import Heading


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `forget`."""
    parser.description = (
        "Delete sessions from the archive for good. The command lists them and asks before it deletes anything."
        " The agents' own files stay as they are."
    )
    add_session_argument(parser, nargs="?")
    parser.add_argument(
        "--project",
        metavar="X",
        help="every session of one project: a path, a hash, or its name; part of a name, if it matches one project only",
    )
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only list what would be forgotten")


def run(options: Namespace, console: Console) -> int:
    """Delete the sessions from the archive; 1 if nothing matches or nobody agrees, 2 if the command line is not clear."""
    from retold.archive.store import FORGETTING, Store
    from retold.cli.console import confirm
    from retold.config import retold_home
    from retold.synchronization.user_changes import forget

    named = [one for one in (options.session, options.project) if one is not None]
    if len(named) != 1 or not named[0].strip():  # an empty text is a part of every name
        console.notice("retold: name either a SESSION or a --project to forget")
        return 2
    folder = retold_home(os.environ)
    with Store(folder) as record:
        found = _matches(record, options, console)
        is_unfinished = record.fact(FORGETTING) is not None
        if not isinstance(found, int):
            count = _list(record, found, console, "forgetting" if options.yes else "would forget")
    if isinstance(found, int):
        if is_unfinished and not options.dry_run:  # the argument may be what an interrupted forget deleted
            forget(folder, ())
            console.notice("retold: a forget that was stopped is finished now")
        return found
    if options.dry_run:
        console.notice("retold: nothing was changed")
        return 0
    question = f"Delete {'it' if count == 1 else f'these {count}'} from the archive for good?"
    if not confirm(console, question, yes=options.yes):
        return 1
    count, is_clean = forget(folder, [one.key for one in found])
    _print_result(count, console, is_clean=is_clean)
    return 0


def _matches(record: Store, options: Namespace, console: Console) -> list[Heading] | int:
    """Return the sessions to forget, or the exit code if none match or the name is not clear."""
    from retold.search.listing import load_headings

    if options.project is not None:
        return _project_matches(record, options, console)
    key = resolve_session(record, options.session, console)
    return key if isinstance(key, int) else load_headings(record, [key])


def _project_matches(record: Store, options: Namespace, console: Console) -> list[Heading] | int:
    """Return the sessions of the project that `--project` names; an exact name wins over parts of names."""
    from retold.cli.options import make_filters
    from retold.search.listing import list_headings

    text = options.project
    rows = list_headings(record, make_filters(record, options, console))
    if not rows:
        console.notice(f"retold: no session of a project {text}")
        return 1
    projects: dict[str, list[Heading]] = {}
    for one in rows:
        projects.setdefault(one.project, []).append(one)
    exact = [found for found in projects.values() if _is_exact(found, text)]
    chosen = exact or list(projects.values())
    if len(chosen) == 1:
        return chosen[0]
    console.notice(f"retold: {text} may mean any of {len(chosen)} projects; name one by its path or hash:")
    for found in sorted(chosen, key=_project_label):
        console.notice(f"  {_project_label(found)}  ({_sessions(len(found))} in all)")
    return 2


def _is_exact(found: Iterable[Heading], text: str) -> bool:
    """Return whether a text is the path, the hash or the whole name of a project, in any case."""
    from retold.projects.matching import fold_name, folder_name, is_path

    name = fold_name(text.rstrip("/\\"))
    return is_path(text) or any(
        name in (fold_name(folder_name(one.root or "")), fold_name(one.native_key or ""))
        or text in (one.root, one.hash, (one.hash or "")[:8])
        for one in found
    )


def _project_label(found: Sequence[Heading]) -> str:
    """Return the folder of a project, else its hash, else the agent's own name for it."""
    return next(filter(None, (one.root or one.hash or one.native_key for one in found)), "(no project)")


def _list(record: Store, found: Sequence[Heading], console: Console, verb: str) -> int:
    """Print the sessions to forget; return their number, subagents included."""
    from retold.archive.queries.lookups import load_family
    from retold.export.text.formatting import format_day, project_name
    from retold.search.dates import to_datetime

    count = len({number for one in found for number in load_family(record, one.key)})
    for one in found:
        ended_at = to_datetime(one.ended_at)
        ended_on = format_day(ended_at) if ended_at else "-"
        project = project_name(one.root, one.hash, one.native_key)
        console.notice(f"{verb} {one.key}  {ended_on}  {project}  {one.title or '(no title)'}")
    subagents = count - len(found)
    more = f", {subagents} of them subagent{'' if subagents == 1 else 's'}" if subagents else ""
    console.notice(f"retold: {_sessions(count)} in all{more}")
    return count


def _sessions(count: int) -> str:
    return f"{count} session{'' if count == 1 else 's'}"


def _print_result(count: int, console: Console, *, is_clean: bool) -> None:
    console.notice(
        f"retold: {_sessions(count)} forgotten, subagents included: gone from record, originals"
        " and index, and no sync brings them back. The agent's own files were not touched."
    )
    if not is_clean:
        console.notice(
            "retold: words may be left in logs beside the archive, because another retold reads it;"
            " the next sync removes them"
        )

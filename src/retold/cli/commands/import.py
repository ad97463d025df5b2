"""`retold import`: another's archive merged into one's own."""  # noqa: N999 - the command is called so

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.synchronization.importer import Imported

COUNTS = ("new_sessions", "merged", "unchanged", "left", "completed", "files", "titles", "tags")


def arguments(parser: ArgumentParser) -> None:
    """Add what `import` understands."""
    parser.add_argument("file", metavar="FILE", help="the other's archive.db, or the folder that it lies in")
    parser.add_argument(
        "--home", metavar="LABEL", help="what to call the homes in it that bear no label; else “imported”"
    )
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be taken")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object: new_sessions, merged, unchanged, ..."
    )


def run(options: Namespace, console: Console) -> int:
    """Import, and tell what was taken; 1 if FILE is no archive, 2 if LABEL is none."""
    from retold.archive.foreign import NoArchive
    from retold.cli.archive import tell_if_emptied
    from retold.cli.progress import Progress, told_config
    from retold.config import retold_home
    from retold.synchronization.import_selection import DEFAULT, is_label
    from retold.synchronization.importer import Import, Tells, import_archive

    label = DEFAULT if options.home is None else options.home
    if not is_label(label):
        console.tell(f"retold: {label!r} is no label: write a short word, such as laptop")
        return 2
    folder, progress = retold_home(os.environ), Progress(console)
    if not options.dry_run:
        tell_if_emptied(console, folder)
    asked = Import(
        options.file, folder, label, told_config(console, folder).excluded, is_trial=options.dry_run
    )
    try:
        found = import_archive(asked, Tells(progress.tell_wait, progress.show, progress.tell_damage))
    except NoArchive as error:
        console.tell(f"retold: {error}")
        return 1
    progress.end()
    for problem in found.problems:
        progress.tell_problem(problem)
    _tell(found, options, console)
    return 0


def _tell(found: Imported, options: Namespace, console: Console) -> None:
    if options.json:
        from retold.model.serialization import encoded

        told = {name: getattr(found, name) for name in COUNTS}
        refused = [{"ours": ours, "theirs": theirs} for ours, theirs in found.refused_titles]
        more = {
            "refused_titles": refused,
            "problems": len(found.problems),
            "seconds": round(found.seconds, 3),
        }
        console.record(encoded({**told, **more}))
        return
    from retold.export.transcript import one_line

    for ours, theirs in found.refused_titles:
        # Another's must not look like lines of ours.
        console.tell(f"retold: “{one_line(ours)}” keeps its title; the other's is “{one_line(theirs)}”")
    console.tell(imported_line(found, is_trial=options.dry_run))


def imported_line(found: Imported, *, is_trial: bool) -> str:
    """Return what came of an import, on one line."""
    told = [
        f"{found.new_sessions:,} new",
        f"{found.merged:,} with more than before",
        f"{found.unchanged:,} already here",
    ]
    if found.completed:
        told.insert(0, f"{found.completed:,} of an import that was stopped")
    if found.left:
        told.append(f"{found.left:,} left out: forgotten here, or of an excluded project")
    taken = [
        f"{number:,} {what}{'' if number == 1 else 's'}"
        for number, what in ((found.files, "file"), (found.titles, "title"), (found.tags, "tag"))
        if number
    ]
    end = f"{'would be taken' if is_trial else 'taken'}: {', '.join(taken) or 'nothing'}"
    return f"sessions: {', '.join(told)}; {end}; {found.seconds:.1f} s"

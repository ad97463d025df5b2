"""`retold import`: merge another archive into this one."""  # noqa: N999 - the name of the command

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.synchronization.importer import ImportReport

COUNTS = ("new_sessions", "merged", "unchanged", "left", "completed", "files", "titles", "tags")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `import`."""
    parser.add_argument("file", metavar="FILE", help="the other's archive.db, or the folder that it lies in")
    parser.add_argument(
        "--home", metavar="LABEL", help="what to call the homes in it that bear no label; else “imported”"
    )
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be taken")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object: new_sessions, merged, unchanged, ..."
    )


def run(options: Namespace, console: Console) -> int:
    """Import an archive and print the result; 1 if FILE is no archive, 2 if LABEL is no label."""
    from retold.archive.foreign import NotAnArchive
    from retold.cli.archive import warn_if_emptied
    from retold.cli.progress import Progress, load_config
    from retold.config import retold_home
    from retold.synchronization.import_offers import DEFAULT_LABEL, is_label
    from retold.synchronization.importer import ImportCallbacks, ImportRequest, import_archive

    label = DEFAULT_LABEL if options.home is None else options.home
    if not is_label(label):
        console.notice(f"retold: {label!r} is no label: write a short word, such as laptop")
        return 2
    folder, progress = retold_home(os.environ), Progress(console)
    if not options.dry_run:
        warn_if_emptied(console, folder)
    excluded = load_config(console, folder).excluded
    request = ImportRequest(options.file, folder, label, excluded, is_trial=options.dry_run)
    callbacks = ImportCallbacks(progress.notice_wait, progress.show, progress.notice_damage)
    try:
        found = import_archive(request, callbacks)
    except NotAnArchive as error:
        console.notice(f"retold: {error}")
        return 1
    progress.end()
    for problem in found.problems:
        progress.notice_problem(problem)
    _print_import(found, options, console)
    return 0


def _print_import(found: ImportReport, options: Namespace, console: Console) -> None:
    if options.json:
        from retold.model.serialization import encode_tree

        counts = {name: getattr(found, name) for name in COUNTS}
        refused = [{"ours": ours, "theirs": theirs} for ours, theirs in found.refused_titles]
        more = {"problems": len(found.problems), "seconds": round(found.seconds, 3)}
        console.write_json(encode_tree({**counts, "refused_titles": refused, **more}))
        return
    from retold.export.transcript import one_line

    for ours, theirs in found.refused_titles:
        # On one line: a title from another archive must not imitate our output.
        console.notice(f"retold: “{one_line(ours)}” keeps its title; the other's is “{one_line(theirs)}”")
    console.notice(format_import(found, is_trial=options.dry_run))


def format_import(found: ImportReport, *, is_trial: bool) -> str:
    """Return the result of an import on one line."""
    counts = [
        f"{found.new_sessions:,} new",
        f"{found.merged:,} with more than before",
        f"{found.unchanged:,} already here",
    ]
    if found.completed:
        counts.insert(0, f"{found.completed:,} of an import that was stopped")
    if found.left:
        counts.append(f"{found.left:,} left out: forgotten here, or of an excluded project")
    taken = [
        f"{number:,} {noun}{'' if number == 1 else 's'}"
        for number, noun in ((found.files, "file"), (found.titles, "title"), (found.tags, "tag"))
        if number
    ]
    end = f"{'would be taken' if is_trial else 'taken'}: {', '.join(taken) or 'nothing'}"
    return f"sessions: {', '.join(counts)}; {end}; {found.seconds:.1f} s"

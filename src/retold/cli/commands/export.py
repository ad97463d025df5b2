"""`retold export`: conversations as files for people and programs."""

from __future__ import annotations

import os

from retold.cli.archive import no_such_session, opened
from retold.cli.export_tables import DATASETS
from retold.cli.options import add_filters, filter_arguments, tell_unknown
from retold.export.formats.registry import FORMATS
from retold.search.filters import FILTERS

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.archive.store import Store
    from retold.cli.console import Console


def arguments(parser: ArgumentParser) -> None:
    """Add what `export` understands."""
    from retold.cli.transcripts import view_argument

    told = {name: form.told for name, form in FORMATS.items()} | DATASETS
    parser.description = (
        "Secrets, addresses, home folders and user names are taken out and told by placeholders, unless --no-redact is given."
        " Formats: " + "; ".join(f"{name}: {form}" for name, form in told.items()) + "."
    )
    parser.add_argument(
        "sessions", nargs="*", metavar="SESSION", help="by key, native id, or the start of either"
    )
    parser.add_argument("--format", choices=told, required=True, metavar="FORMAT", help=", ".join(told))
    parser.add_argument(
        "-o",
        "--output",
        metavar="PATH",
        help="a file, or a folder for a file per conversation or a dataset; - or nothing: stdout",
    )
    parser.add_argument("--all", action="store_true", help="every conversation")
    parser.add_argument("--no-redact", action="store_true", help="leave secrets as they are")
    parser.add_argument(
        "--images", action="store_true", help="keep pictures, in which nobody looks for secrets"
    )
    parser.add_argument("--report", metavar="FILE", help="write what was taken out, and where, as JSON lines")
    parser.add_argument(
        "--messages", type=_range, metavar="A-B", help="only these entries, counted from 1: 3-10, 7-, 12"
    )
    parser.add_argument("--templates", metavar="DIR", help="a folder with templates of your own")
    parser.add_argument("--thoughts", action="store_true", help="also what the model thought")
    parser.add_argument(
        "--tools", choices=("none", "names", "full"), default="full", help="how much of tool calls"
    )
    parser.add_argument("--tokens", action="store_true", help="also the tokens of each answer")
    parser.add_argument(
        "--notices", action="store_true", help="also notices and what the agent added to messages"
    )
    view_argument(parser)
    filter_arguments(parser)


def run(options: Namespace, console: Console) -> int:
    """Write the files; 1 if there is nothing to export, 2 if it is not clear what or where to."""
    from retold.cli.export_files import ExportRun

    if not (options.sessions or options.all or any(getattr(options, name) is not None for name in FILTERS)):
        console.tell("retold: name a session or a filter, or --all")
        return 2
    if options.no_redact and options.report is not None:
        console.tell("retold: --report tells what was taken out, and --no-redact takes nothing out")
        return 2
    if options.templates is not None and not os.path.isdir(options.templates):
        console.tell(f"retold: {options.templates}: no such folder")
        return 2
    if options.format in DATASETS:
        return _dataset(options, console)
    with opened(console) as record:
        keys = _chosen(record, options, console)
        return keys if isinstance(keys, int) else ExportRun(record, options, console).run(keys)


def _dataset(options: Namespace, console: Console) -> int:
    from retold.cli.export_tables import DatasetExport, is_dataset, refused_agents, unclear

    if (told := unclear(options)) is not None:
        console.tell(f"retold: {told}")
        return 2
    with opened(console) as record:
        keys = _chosen(record, options, console, every_kind=True)
        if isinstance(keys, int):
            return keys
        if not keys:
            console.tell("retold: no sessions found")
            tell_unknown(record, options, console)
        if not keys and not is_dataset(options.output):
            return 1
        # Of what was there and is chosen no more, nothing may be left: it may have been forgotten.
        done = DatasetExport(record, options, console).run(keys, refused_agents(options))
        return done if keys else done or 1


def _chosen(
    record: Store, options: Namespace, console: Console, *, every_kind: bool = False
) -> list[str] | int:
    """Return the keys of what is meant, each once; an exit code where that is not clear."""
    from retold.cli.project_names import project_finder
    from retold.search.filters import Filters
    from retold.search.listing import listed_keys, named, titled

    keys: list[str] = []
    for name in options.sessions:
        found = named(record, name)
        if len(found) != 1:
            return no_such_session(console, name, found)
        keys.append(found[0][0])
    if not options.sessions:
        wanted = add_filters(Filters(find_project=project_finder(record, console)), options)
        keys = [key for key, _ in titled(record, wanted)] if every_kind else listed_keys(record, wanted)
    if not keys and not every_kind:
        console.tell("retold: no sessions found")
        tell_unknown(record, options, console)
        return 1
    return list(dict.fromkeys(keys))


def _range(text: str) -> tuple[int, int | None]:
    """Return the first and the last entry that are meant."""
    from argparse import ArgumentTypeError

    first, dash, last = text.partition("-")
    if not first.isdecimal() or not (last.isdecimal() or last == "") or int(first) < 1:
        raise ArgumentTypeError(f"{text!r} is no range: try 3-10, 7- or 12")
    return int(first), (int(last) if last else None) if dash else int(first)

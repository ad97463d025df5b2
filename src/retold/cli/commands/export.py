"""`retold export`: conversations as files for people and programs."""

import os
from argparse import ArgumentParser, Namespace

from retold.archive.store import Store
from retold.cli.archive import open_archive, resolve_session
from retold.cli.console import Console
from retold.cli.export_tables import DATASETS
from retold.cli.options import add_filter_arguments, make_filters, warn_of_unknown_names
from retold.export.formats.registry import FORMATS
from retold.search.filters import FILTERS


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `export`."""
    from retold.cli.transcripts import add_view_argument

    formats = {name: form.description for name, form in FORMATS.items()} | DATASETS
    parser.description = (
        "Secrets, addresses, home folders and user names are taken out and told by placeholders, unless --no-redact is given."
        " Formats: " + "; ".join(f"{name}: {text}" for name, text in formats.items()) + "."
    )
    parser.add_argument(
        "sessions", nargs="*", metavar="SESSION", help="by key, native id, or the start of either"
    )
    parser.add_argument("--format", choices=formats, required=True, metavar="FORMAT", help=", ".join(formats))
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
        "--messages",
        type=_parse_range,
        metavar="A-B",
        help="only these entries, counted from 1: 3-10, 7-, 12",
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
    add_view_argument(parser)
    add_filter_arguments(parser)


def run(options: Namespace, console: Console) -> int:
    """Export conversations; 1 if there is nothing to export, 2 if the sessions or the target are not clear."""
    if not (options.sessions or options.all or any(getattr(options, name) is not None for name in FILTERS)):
        console.notice("retold: name a session or a filter, or --all")
        return 2
    if options.no_redact and options.report is not None:
        console.notice("retold: --report tells what was taken out, and --no-redact takes nothing out")
        return 2
    if options.templates is not None and not os.path.isdir(options.templates):
        console.notice(f"retold: {options.templates}: no such folder")
        return 2
    if options.format in DATASETS:
        return _export_dataset(options, console)
    from retold.cli.export_files import ExportRun

    with open_archive(console) as record:
        keys = _select_keys(record, options, console)
        return keys if isinstance(keys, int) else ExportRun(record, options, console).run(keys)


def _export_dataset(options: Namespace, console: Console) -> int:
    from retold.cli.export_tables import export_dataset, find_conflict, is_dataset

    if (conflict := find_conflict(options)) is not None:
        console.notice(f"retold: {conflict}")
        return 2
    with open_archive(console) as record:
        keys = _select_keys(record, options, console, every_kind=True)
        if isinstance(keys, int):
            return keys
        if not keys:
            console.notice("retold: no sessions found")
            warn_of_unknown_names(record, options, console)
        if not keys and not is_dataset(options.output):
            return 1
        # Without a match the dataset is still emptied: its sessions may have been forgotten.
        code = export_dataset(record, keys, options, console)
        return code if keys else code or 1


def _select_keys(
    record: Store, options: Namespace, console: Console, *, every_kind: bool = False
) -> list[str] | int:
    """Return the keys of the named or matching sessions, each once; an exit code if a name is not clear."""
    from retold.search.listing import list_keys, list_titles

    keys: list[str] = []
    for name in options.sessions:
        key = resolve_session(record, name, console)
        if isinstance(key, int):
            return key
        keys.append(key)
    if not options.sessions:
        filters = make_filters(record, options, console)
        keys = [key for key, _ in list_titles(record, filters)] if every_kind else list_keys(record, filters)
    if not keys and not every_kind:
        console.notice("retold: no sessions found")
        warn_of_unknown_names(record, options, console)
        return 1
    return list(dict.fromkeys(keys))


def _parse_range(text: str) -> tuple[int, int | None]:
    """Return the first and the last number of a range such as 3-10."""
    from argparse import ArgumentTypeError

    first, dash, last = text.partition("-")
    if not first.isdecimal() or not (last.isdecimal() or last == "") or int(first) < 1:
        raise ArgumentTypeError(f"{text!r} is no range: try 3-10, 7- or 12")
    return int(first), (int(last) if last else None) if dash else int(first)

"""`retold sync`: bring the archive up to date."""

from __future__ import annotations

from retold.cli.progress import add_home_arguments, format_coverage, missing_homes, run_sync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `sync`."""
    add_home_arguments(
        parser, "also read this home folder: another machine's, or a backup's; with a LABEL it is remembered"
    )
    parser.add_argument("--reindex", action="store_true", help="rebuild the text index from the archive")
    parser.add_argument("--json", action="store_true", help="one JSON object: found, read, unchanged, ...")


def run(options: Namespace, console: Console) -> int:
    """Update the archive and print the number of files read; 1 if a home does not exist."""
    code = 1 if missing_homes(options.home or ()) else 0
    coverage = run_sync(console, options.home or (), options.agent or (), reindex=bool(options.reindex))
    if not options.json:
        console.notice(format_coverage(coverage))
        return code
    names = ("found", "read", "unchanged", "new_sessions", "problems")
    counts = ", ".join(f'"{name}": {getattr(coverage, name)}' for name in names)
    console.write_json(f'{{{counts}, "seconds": {coverage.seconds:.3f}}}'.encode())
    return code

"""`retold projects`: where conversations took place, and how we know."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console


def arguments(parser: ArgumentParser) -> None:
    """Add what `projects` understands."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a part of the name, in any case; letters in order will do"
    )
    parser.add_argument(
        "--scan", action="store_true", help="look through your development folders for unknown roots"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per project")


def run(options: Namespace, console: Console) -> int:
    """Print the projects; 1 if none is meant."""
    import json

    from retold.cli.archive import opened
    from retold.export.text.table import project_line
    from retold.search.listing import called, places, with_roots

    with opened(console) as record:
        found = places(record)
    if options.scan:
        from retold.cli.project_scan import scan_for

        unknown = [place.hash for place in found if place.hash and not place.is_proven]
        found = with_roots(found, scan_for(unknown, console))
    rows = called(found, options.name) if options.name else found
    for place in rows:
        if options.json:
            console.record(json.dumps(place.as_json(), ensure_ascii=False).encode("utf-8", "replace"))
        else:
            console.line(project_line(place))
    if not rows:
        console.tell("retold: no such project" if options.name else "retold: no projects found")
    return 0 if rows else 1

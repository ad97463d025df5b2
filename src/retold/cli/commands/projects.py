"""`retold projects`: where conversations took place, and how we know."""

from argparse import ArgumentParser, Namespace

from retold.cli.census import home_argument
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
    home_argument(parser)


def run(options: Namespace, console: Console) -> int:
    """Print the projects; 1 if none is meant."""
    from retold.cli.census import read_sessions, take_census
    from retold.cli.scanning import scan_for
    from retold.export.table import project_line
    from retold.model.wire import encoded
    from retold.query.places import called, places, with_roots

    found = places(read_sessions(take_census(options, console), console, is_outline=True))
    if options.scan:
        found = with_roots(
            found, scan_for([place.hash for place in found if place.hash and not place.is_proven], console)
        )
    rows = called(found, options.name) if options.name else found
    for place in rows:
        if options.json:
            console.record(encoded(place.as_json()))
        else:
            console.line(project_line(place))
    if not rows:
        console.tell("retold: no such project" if options.name else "retold: no projects found")
    return 0 if rows else 1

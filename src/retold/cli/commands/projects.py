"""`retold projects`: list the projects, their folders, and the evidence for them."""

from argparse import ArgumentParser, Namespace

from retold.cli.console import Console


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `projects`."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a part of the name, in any case; letters in order will do"
    )
    parser.add_argument(
        "--scan", action="store_true", help="look through your development folders for unknown roots"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per project")


def run(options: Namespace, console: Console) -> int:
    """Print the projects; 1 if none matches."""
    import json

    from retold.cli.archive import open_archive
    from retold.export.text.formatting import format_project
    from retold.search.listing import add_roots, list_projects, match_projects

    with open_archive(console) as record:
        found = list_projects(record)
    if options.scan:
        from retold.cli.project_roots import scan_for_roots

        unknown = [project.hash for project in found if project.hash and not project.is_proven]
        found = add_roots(found, scan_for_roots(unknown, console))
    rows = match_projects(found, options.name) if options.name else found
    for project in rows:
        if options.json:
            console.write_json(json.dumps(project.as_json(), ensure_ascii=False).encode("utf-8", "replace"))
        else:
            console.write_line(format_project(project))
    if not rows:
        console.notice("retold: no such project" if options.name else "retold: no projects found")
    return 0 if rows else 1

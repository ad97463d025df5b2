"""`retold brief`: what a project comes to, for a person or an agent to start from."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.insights.digest import Digest
    from retold.search.listing import ProjectPlace


def arguments(parser: ArgumentParser) -> None:
    """Add what `brief` understands."""
    from retold.cli.options import count, date_arguments

    parser.description = (
        "A digest of a project, as Markdown: its sessions, what was left open, what was decided, commands that failed and"
        " what mended them, files changed; each line names session and turn. No model is called, and the same archive gives"
        " the same page. Secrets are taken out, unless --no-redact is given."
    )
    parser.add_argument(
        "project",
        nargs="?",
        metavar="PROJECT",
        help="a path, a project hash or its first 8 characters, or part of its name; without it, where you are",
    )
    date_arguments(parser)
    parser.add_argument(
        "--tokens", type=count, metavar="N", help="as long as about so many tokens; 1,500 if not told"
    )
    parser.add_argument(
        "--limit", type=count, metavar="N", help="look into so many sessions, the newest; 100 if not told"
    )
    parser.add_argument("--no-redact", action="store_true", help="leave secrets as they are")
    parser.add_argument("--json", action="store_true", help="all of it as one JSON object")


def run(options: Namespace, console: Console) -> int:
    """Print the digest; 1 if there is no such project, or nothing in it, 2 if several are meant."""
    from retold.cli.archive import opened

    with opened(console) as record:
        place = _meant(record, options.project, console)
        if isinstance(place, int):
            return place
        found = _digest(record, place, options)
    if not found.sessions:
        console.tell("retold: no sessions found")
        return 1
    _print(found, place.name, options, console)
    return 0


def _meant(record: Store, text: str | None, console: Console) -> ProjectPlace | int:
    """Return the project that is meant; an exit code where that is not clear."""
    from retold.cli.project_names import find_project
    from retold.search.listing import around, meant, places, with_roots

    known = places(record)
    if text is None:
        here = around(known, os.getcwd())
        if here is None:
            console.tell(
                "retold: no session took place in this folder: name a project (`retold projects` lists them)"
            )
        return 1 if here is None else here
    found = meant(known, text)
    if not found and (roots := find_project(record, text, console)):
        found = meant(with_roots(known, roots), text)
    if len(found) > 1:
        console.tell(f"retold: {text} may mean any of {len(found)} projects:")
        for place in found[:10]:
            console.tell(f"  {place.root or place.hash or place.name}")
        return 2
    if not found:
        console.tell("retold: no such project")
        return 1
    return found[0]


def _digest(record: Store, place: ProjectPlace, options: Namespace) -> Digest:
    from retold.cli.options import add_filters
    from retold.insights.digest import MOST, digest
    from retold.search.filters import Filters

    wanted = add_filters(Filters(), options, without=("project",))
    wanted.keep_project(place)
    return digest(record, wanted, options.limit or MOST)


def _print(found: Digest, name: str, options: Namespace, console: Console) -> None:
    from retold.export.brief import MOST_TOKENS, brief, brief_json

    if not options.no_redact:
        from retold.export.files import report_sentence
        from retold.redaction import Redactor

        redactor = Redactor(home=os.path.expanduser("~"))
        found = redactor.redacted_value(found)
        report = [one for one in redactor.report() if one.kind != "home"]  # every path has that in it
        if report:
            console.tell(f"retold: {report_sentence(report)}")
    if options.json:
        console.record(brief_json(found, name))
        return
    for line in brief(found, name, options.tokens or MOST_TOKENS).splitlines():
        _print_line(line, console)


def _print_line(line: str, console: Console) -> None:
    """Print a line of Markdown; on a terminal it is broken between words, which changes nothing of what it says."""
    from textwrap import wrap

    if not console.out.isatty():
        console.line(line)
        return
    indent = "  " if line.startswith("- ") else ""
    lines = wrap(
        line, console.columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    for part in lines or [""]:
        console.line(part, "title" if line.startswith("#") else "plain")

"""`retold brief`: a digest of a project for a person or an agent who starts to work in it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.insights.digest import Digest
    from retold.search.listing import ProjectSummary


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `brief`."""
    from retold.cli.options import add_date_arguments, parse_count

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
    add_date_arguments(parser)
    parser.add_argument(
        "--tokens", type=parse_count, metavar="N", help="as long as about so many tokens; 1,500 if not told"
    )
    parser.add_argument(
        "--limit",
        type=parse_count,
        metavar="N",
        help="look into so many sessions, the newest; 100 if not told",
    )
    parser.add_argument("--no-redact", action="store_true", help="leave secrets as they are")
    parser.add_argument("--json", action="store_true", help="all of it as one JSON object")


def run(options: Namespace, console: Console) -> int:
    """Print the digest; 1 if there is no such project or nothing in it, 2 if the name means several."""
    from retold.cli.archive import open_archive

    with open_archive(console) as record:
        project = _resolve_project(record, options.project, console)
        if isinstance(project, int):
            return project
        found = _make_digest(record, project, options)
    if not found.sessions:
        console.notice("retold: no sessions found")
        return 1
    _print(found, project.name, options, console)
    return 0


def _resolve_project(record: Store, text: str | None, console: Console) -> ProjectSummary | int:
    """Return the project that `text` means, or that of the working directory; or an exit code if it means none or several."""
    from retold.cli.project_roots import find_project
    from retold.search.listing import add_roots, list_projects, project_at, select_projects

    known = list_projects(record)
    if text is None:
        here = project_at(known, os.getcwd())
        if here is None:
            console.notice(
                "retold: no session took place in this folder: name a project (`retold projects` lists them)"
            )
        return 1 if here is None else here
    found = select_projects(known, text)
    if not found and (roots := find_project(record, text, console)):
        found = select_projects(add_roots(known, roots), text)
    if len(found) > 1:
        console.notice(f"retold: {text} may mean any of {len(found)} projects:")
        for one in found[:10]:
            console.notice(f"  {one.root or one.hash or one.name}")
        return 2
    if not found:
        console.notice("retold: no such project")
        return 1
    return found[0]


def _make_digest(record: Store, project: ProjectSummary, options: Namespace) -> Digest:
    from retold.cli.options import add_filters
    from retold.insights.digest import MOST, load_digest
    from retold.search.filters import Filters

    wanted = add_filters(Filters(), options, without=("project",))
    wanted.add_project(project)
    return load_digest(record, wanted, options.limit or MOST)


def _print(found: Digest, name: str, options: Namespace, console: Console) -> None:
    from retold.export.brief import MOST_TOKENS, brief_json, format_brief

    if not options.no_redact:
        from retold.export.files import format_removals
        from retold.redaction import Redactor

        redactor = Redactor(home=os.path.expanduser("~"))
        found = redactor.redact_value(found, is_line=True)
        report = [
            one for one in redactor.report() if one.kind != "home"
        ]  # nearly every path contains the home
        if report:
            console.notice(f"retold: {format_removals(report)}")
    if options.json:
        console.write_json(brief_json(found, name))
        return
    for line in format_brief(found, name, options.tokens or MOST_TOKENS).splitlines():
        _print_line(line, console)


def _print_line(line: str, console: Console) -> None:
    """Print a line of Markdown; on a terminal wrap it between words, which Markdown allows."""
    from textwrap import wrap

    if not console.out.isatty():
        console.write_line(line)
        return
    indent = "  " if line.startswith("- ") else ""
    lines = wrap(
        line, console.columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    for part in lines or [""]:
        console.write_line(part, "title" if line.startswith("#") else "plain")

"""`retold events`: files as normalised events."""

from argparse import ArgumentParser, Namespace

from retold.cli.console import Console
from retold.cli.files import sessions, view_argument


def arguments(parser: ArgumentParser) -> None:
    """Add what `events` understands."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a transcript; its form is found by its content"
    )
    view_argument(parser)
    parser.add_argument("--text", action="store_true", help="also what the model said")
    parser.add_argument("--json", action="store_true", help="one JSON object per event")


def run(options: Namespace, console: Console) -> int:
    """Print each event; 1 if any file was no session."""
    from retold.export.log import event_line
    from retold.model.problem import Problem
    from retold.model.steps import steps
    from retold.model.wire import step_json

    code = 0
    for session in sessions(options, console):
        if isinstance(session, Problem):
            code = 1
            continue
        for step in steps(session, with_text=options.text):
            if options.json:
                console.record(step_json(step))
            else:
                line = event_line(step)
                console.line(line.text, line.style)
    return code

"""`retold read`: files as they are."""

from argparse import ArgumentParser, Namespace

from retold.cli.console import Console
from retold.cli.transcripts import print_session, sessions, transcript_arguments


def arguments(parser: ArgumentParser) -> None:
    """Add what `read` understands."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a transcript; its form is found by its content"
    )
    transcript_arguments(parser)


def run(options: Namespace, console: Console) -> int:
    """Print each session; 1 if any file was none."""
    from retold.model.problem import Problem

    code, is_first = 0, True
    for session in sessions(options, console):
        if isinstance(session, Problem):
            code = 1
            continue
        if not is_first and not options.json:
            console.line("")
        print_session(session, options, console)
        is_first = False
    return code

"""`retold read`: the transcripts in files, without an archive."""

from argparse import ArgumentParser, Namespace

from retold.cli.console import Console
from retold.cli.transcripts import add_transcript_arguments, print_session, read_sessions


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `read`."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a transcript; its form is found by its content"
    )
    add_transcript_arguments(parser)


def run(options: Namespace, console: Console) -> int:
    """Print each session; 1 if a file holds none."""
    from retold.model.problem import Problem

    code, is_first = 0, True
    for session in read_sessions(options, console):
        if isinstance(session, Problem):
            code = 1
            continue
        if not is_first and not options.json:
            console.write_line("")
        print_session(session, options, console)
        is_first = False
    return code

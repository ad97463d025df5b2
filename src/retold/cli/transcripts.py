"""Transcripts for commands: their options, reading of files, and printing."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from retold.cli.console import Console
from retold.model.problem import Problem
from retold.model.session import Session


def add_view_argument(parser: ArgumentParser) -> None:
    """Add `--view`."""
    parser.add_argument(
        "--view",
        choices=("full", "active"),
        default="full",
        help="full: everything ever recorded (default); active: what the agent itself would load",
    )


def read_sessions(options: Namespace, console: Console) -> Iterator[Session | Problem]:
    """Yield the sessions in each file; for a file without any print its Problem on stderr, and yield it."""
    from retold.agents.registry import NotASession, read
    from retold.model.serialization import encode_problem

    for file in options.files:
        try:
            yield from read(file, options.view)
        except NotASession as refusal:
            problem = refusal.problem
            text = f"retold: {problem.path}: {problem.message} [{problem.code}]"
            console.notice(encode_problem(problem).decode() if options.json else text)
            yield problem


def add_transcript_arguments(parser: ArgumentParser) -> None:
    """Add the options that choose the contents of a transcript."""
    add_view_argument(parser)
    parser.add_argument("--thoughts", action="store_true", help="show what the model thought")
    parser.add_argument(
        "--tools", choices=("none", "names", "full"), default="names", help="how much of tool calls"
    )
    parser.add_argument("--tokens", action="store_true", help="show the tokens of each answer")
    parser.add_argument(
        "--notices", action="store_true", help="show notices and what the agent added to messages"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per session")


def print_session(session: Session, options: Namespace, console: Console) -> None:
    """Print a session as text or as JSON."""
    from retold.export.transcript import TranscriptOptions, format_transcript
    from retold.model.serialization import encode_session

    if options.json:
        console.write_json_in_pieces(encode_session(session))
        return
    choice = TranscriptOptions(options.tools, options.thoughts, options.tokens, options.notices)
    for line in format_transcript(session, choice):
        console.write_line(line.text, line.style)

"""The choices that commands which print transcripts share."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from retold.cli.console import Console
from retold.model.problem import Problem
from retold.model.session import Session


def view_argument(parser: ArgumentParser) -> None:
    """Add the choice of view."""
    parser.add_argument(
        "--view",
        choices=("full", "active"),
        default="full",
        help="full: everything ever recorded (default); active: what the agent itself would load",
    )


def sessions(options: Namespace, console: Console) -> Iterator[Session | Problem]:
    """Yield the sessions of every file, or the Problem that it has none, which is told on stderr."""
    from retold.agents.registry import NotASession, read
    from retold.model.serialization import problem_json

    for file in options.files:
        try:
            yield from read(file, options.view)
        except NotASession as refusal:
            told = refusal.problem
            line = (
                problem_json(told).decode() if options.json else f"{told.path}: {told.message} [{told.code}]"
            )
            console.tell(line if options.json else f"retold: {line}")
            yield told


def transcript_arguments(parser: ArgumentParser) -> None:
    """Add what a transcript can show."""
    view_argument(parser)
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
    """Print a session in the form that was asked for."""
    from retold.export.transcript import TranscriptOptions, transcript
    from retold.model.serialization import session_pieces

    if options.json:
        console.record_of(session_pieces(session))
        return
    for line in transcript(
        session, TranscriptOptions(options.tools, options.thoughts, options.tokens, options.notices)
    ):
        console.line(line.text, line.style)

"""`retold read`: files as they are."""

from argparse import ArgumentParser, Namespace

from retold.cli.console import Console
from retold.cli.files import sessions, view_argument


def arguments(parser: ArgumentParser) -> None:
    """Add what `read` understands."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a transcript; its form is found by its content"
    )
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


def run(options: Namespace, console: Console) -> int:
    """Print each session; 1 if any file was none."""
    from retold.export.transcript import Wanted, transcript  # noqa: PLC0415
    from retold.model.problem import Problem  # noqa: PLC0415
    from retold.model.wire import session_json  # noqa: PLC0415

    wanted = Wanted(options.tools, options.thoughts, options.tokens, options.notices)
    code, is_first = 0, True
    for session in sessions(options, console):
        if isinstance(session, Problem):
            code = 1
        elif options.json:
            console.record(session_json(session))
        else:
            if not is_first:
                console.line("")
            for line in transcript(session, wanted):
                console.line(line.text, line.style)
            is_first = False
    return code

"""`retold events`: a conversation, or files, as normalised events."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from retold.agents import NAMES
from retold.cli.console import Console
from retold.cli.transcripts import sessions, view_argument
from retold.model.problem import Problem
from retold.model.session import Session


def arguments(parser: ArgumentParser) -> None:
    """Add what `events` understands."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="SESSION|FILE",
        help="a session in the archive, by its key, its native id or the start of either; or transcript files",
    )
    view_argument(parser)
    parser.add_argument("--text", action="store_true", help="also what the model said")
    parser.add_argument("--json", action="store_true", help="one JSON object per event")


def run(options: Namespace, console: Console) -> int:
    """Print each event; 1 if something was no session, 2 if a name means several."""
    from retold.export.text.events import event_line
    from retold.model.events import steps
    from retold.model.serialization import step_json

    code = 0
    for session in _told(options, console):
        if not isinstance(session, Session):
            code = max(code, session if isinstance(session, int) else 1)
            continue
        for step in steps(session, with_text=options.text):
            if options.json:
                console.record(step_json(step))
            else:
                line = event_line(step)
                console.line(line.text, line.style)
    return code


def _told(options: Namespace, console: Console) -> Iterator[Session | Problem | int]:
    """Yield sessions of the archive and of files; a Problem for what is no session, an exit code for an unclear name."""
    for name in options.files:
        is_key = name.partition(":")[0] in NAMES  # that of a subagent has a slash in it
        if os.path.exists(name) or (os.sep in name and not is_key):
            yield from sessions(Namespace(files=[name], view=options.view, json=options.json), console)
        else:
            yield _of_archive(name, options, console)


def _of_archive(name: str, options: Namespace, console: Console) -> Session | int:
    from retold.cli.archive import no_such_session, opened
    from retold.search.listing import named
    from retold.sessions.load import load_session

    with opened(console) as record:
        found = named(record, name)
        session = load_session(record, found[0][0], options.view) if len(found) == 1 else None
        return no_such_session(console, name, found) if session is None else session

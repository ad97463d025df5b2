"""`retold events`: conversations of the archive or of files as normalised events."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from retold.agents import NAMES
from retold.cli.console import Console
from retold.cli.transcripts import add_view_argument, read_sessions
from retold.model.problem import Problem
from retold.model.session import Session


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `events`."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="SESSION|FILE",
        help="a session in the archive, by its key, its native id or the start of either; or transcript files",
    )
    add_view_argument(parser)
    parser.add_argument("--text", action="store_true", help="also what the model said")
    parser.add_argument("--json", action="store_true", help="one JSON object per event")


def run(options: Namespace, console: Console) -> int:
    """Print each event; 1 if an argument is no session, 2 if it means several."""
    from retold.export.text.events import format_event
    from retold.model.events import steps
    from retold.model.serialization import encode_step

    code = 0
    for session in _load_sessions(options, console):
        if not isinstance(session, Session):
            code = max(code, session if isinstance(session, int) else 1)
            continue
        for step in steps(session, with_text=options.text):
            if options.json:
                console.write_json(encode_step(step))
            else:
                line = format_event(step)
                console.write_line(line.text, line.style)
    return code


def _load_sessions(options: Namespace, console: Console) -> Iterator[Session | Problem | int]:
    """Yield the sessions of the archive and of files; a Problem for a file without one, an exit code for an unclear name."""
    for name in options.files:
        is_key = name.partition(":")[0] in NAMES  # the key of a subagent contains a slash
        if os.path.exists(name) or (os.sep in name and not is_key):
            yield from read_sessions(Namespace(files=[name], view=options.view, json=options.json), console)
        else:
            yield _load_archived(name, options, console)


def _load_archived(name: str, options: Namespace, console: Console) -> Session | int:
    from retold.cli.archive import open_archive, report_no_match, resolve_session
    from retold.sessions.load import load_session

    with open_archive(console) as record:
        key = resolve_session(record, name, console)
        if isinstance(key, int):
            return key
        return load_session(record, key, options.view) or report_no_match(console, name, [])

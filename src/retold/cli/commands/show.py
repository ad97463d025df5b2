"""`retold show`: the transcript of a conversation in the archive."""

from argparse import ArgumentParser, Namespace

from retold.cli.archive import add_session_argument, open_archive, report_no_match, resolve_session
from retold.cli.console import Console
from retold.cli.transcripts import add_transcript_arguments, print_session


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `show`."""
    add_session_argument(parser)
    add_transcript_arguments(parser)


def run(options: Namespace, console: Console) -> int:
    """Print the session; 1 if there is none, 2 if the name means several."""
    with open_archive(console) as record:
        key = resolve_session(record, options.session, console)
        if isinstance(key, int):
            return key
        from retold.sessions.load import load_session

        session = load_session(record, key, options.view)
        if session is None:
            return report_no_match(console, options.session, [])
        print_session(session, options, console)
    return 0

"""`retold show`: the transcript of a conversation, from all its files."""

from argparse import ArgumentParser, Namespace

from retold.cli.archive import no_such_session, opened, session_argument
from retold.cli.console import Console
from retold.cli.transcripts import print_session, transcript_arguments


def arguments(parser: ArgumentParser) -> None:
    """Add what `show` understands."""
    session_argument(parser)
    transcript_arguments(parser)


def run(options: Namespace, console: Console) -> int:
    """Print the session; 1 if none is meant, 2 if several are."""
    from retold.search.listing import named

    with opened(console) as record:
        found = named(record, options.session)
        if len(found) != 1:
            return no_such_session(console, options.session, found)
        from retold.sessions.load import load_session

        session = load_session(record, found[0][0], options.view)
        if session is None:
            return no_such_session(console, options.session, [])
        print_session(session, options, console)
    return 0

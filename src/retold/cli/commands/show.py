"""`retold show`: the transcript of a conversation, from all its files."""

from argparse import ArgumentParser, Namespace

from retold.cli.census import home_argument
from retold.cli.console import Console
from retold.cli.transcripts import print_session, transcript_arguments

MOST_NAMES = 10


def arguments(parser: ArgumentParser) -> None:
    """Add what `show` understands."""
    parser.add_argument(
        "session", metavar="SESSION", help="a key, a native id, or an unambiguous start of either"
    )
    transcript_arguments(parser)
    home_argument(parser)


def run(options: Namespace, console: Console) -> int:
    """Print the session; 1 if none is meant, 2 if several are."""
    from retold.cli.census import read_sessions, take_census
    from retold.ingest.kinship import Kinship
    from retold.query.listing import named

    kinship = Kinship()
    taken = take_census(options, console)
    found = named(kinship.watch(read_sessions(taken, console, view=options.view)), options.session)
    if len(found) == 1:
        print_session(kinship.told(found[0]), options, console)
        return 0
    if not found:
        console.tell(f"retold: no session {options.session}")
        return 1
    console.tell(f"retold: {options.session} may mean any of {len(found)} sessions:")
    for session in found[:MOST_NAMES]:
        console.tell(f"  {session.key}  {session.title or ''}")
    return 2

"""`retold tag`: add tags to a session, take them off, or print them."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from retold.archive.store import Store
from retold.cli.archive import add_session_argument
from retold.cli.console import Console


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `tag`."""
    add_session_argument(parser)
    parser.add_argument(
        "tags", nargs="*", metavar="+TAG|-TAG", help="+x adds a tag, -y takes one off; none prints them"
    )


def escape_dashes(given: list[str]) -> list[str]:
    """Return the arguments with a blank before each -TAG, so that argparse does not take it for an option."""
    return [f" {word}" if word.startswith("-") and word not in ("-h", "--help") else word for word in given]


def run(options: Namespace, console: Console) -> int:
    """Change the tags and print them; 1 if there is no such session, 2 if the name means several or a tag is malformed."""
    from retold.cli.archive import change_session

    tags = [tag.strip() for tag in options.tags]
    wrong = [tag for tag in tags if tag.split() != [tag] or not tag.lstrip("+-")]
    if wrong:
        console.notice(f"retold: {wrong[0]!r} is no tag: write +x to add x, -y to take y off")
        return 2
    return change_session(options.session, console, lambda record, key: _change(record, key, tags, console))


def _change(record: Store, key: str, tags: Sequence[str], console: Console) -> None:
    from retold.synchronization.user_changes import change_tags, load_tags

    if tags:
        change_tags(record, key, tags)
    for tag in load_tags(record, key):
        console.write_line(tag)

"""`retold tag`: words of your own by which sessions are found again."""

from __future__ import annotations

from retold.cli.archive import session_argument

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from retold.archive.store import Store
    from retold.cli.console import Console


def arguments(parser: ArgumentParser) -> None:
    """Add what `tag` understands."""
    session_argument(parser)
    parser.add_argument(
        "tags", nargs="*", metavar="+TAG|-TAG", help="+x adds a tag, -y takes one off; none prints them"
    )


def as_words(given: list[str]) -> list[str]:
    """Return what was typed with -tags marked as words: a blank before them tells argparse that they are no options."""
    return [f" {word}" if word.startswith("-") and word not in ("-h", "--help") else word for word in given]


def run(options: Namespace, console: Console) -> int:
    """Change the tags and print them; 1 if no session is meant, 2 if several are or a tag is none."""
    from retold.cli.archive import changed

    tags = [tag.strip() for tag in options.tags]
    wrong = [tag for tag in tags if tag.split() != [tag] or not tag.lstrip("+-")]
    if wrong:
        console.tell(f"retold: {wrong[0]!r} is no tag: write +x to add x, -y to take y off")
        return 2
    return changed(options.session, console, lambda record, key: _change(record, key, tags, console))


def _change(record: Store, key: str, tags: Sequence[str], console: Console) -> None:
    from retold.synchronization.user_changes import tag_session, tags_of

    if tags:
        tag_session(record, key, tags)
    for tag in tags_of(record, key):
        console.line(tag)

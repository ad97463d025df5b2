"""`retold search`: find what was said."""

from __future__ import annotations

from retold.cli.options import add_filters, count, filter_arguments, tell_unknown
from retold.search.query import SYNTAX

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Iterator

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.search.filters import FindProject
    from retold.search.query import Field
    from retold.search.results import SearchResult

SHOWN = 10


def arguments(parser: ArgumentParser) -> None:
    """Add what `search` understands."""
    parser.add_argument(
        "query",
        nargs="+",
        metavar="QUERY",
        help=SYNTAX,
    )
    filter_arguments(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--substring", action="store_true", help="find these letters anywhere in all text")
    how.add_argument("--regex", action="store_true", help="find what this regular expression matches")
    how.add_argument(
        "--any", action="store_true", help="find what comes closest to a question in plain words"
    )
    parser.add_argument(
        "-n", "--limit", type=count, metavar="N", default=SHOWN, help="at most this many conversations"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per conversation")


def as_words(given: list[str]) -> list[str]:
    """Return what was typed with -words marked as words: a blank before them tells argparse that they are no options."""
    return [f" {word}" if _is_unwanted(word) else word for word in given]


def _is_unwanted(word: str) -> bool:
    is_option = word[1:2] == "-" or len(word) == len("-n") or (word[1:2] == "n" and word[2:].isdecimal())
    return word.startswith("-") and not is_option


def run(options: Namespace, console: Console) -> int:
    """Print the conversations, the best first; 1 if nothing is found, 2 if the query means nothing."""
    from retold.search.query import QuerySyntaxError

    code = 1
    try:
        for conversation in _found(options, console):
            if options.json:
                from retold.export.text.search_results import conversation_json

                console.record(conversation_json(conversation))
            else:
                _print(conversation, console, is_first=code == 1)
            code = 0
    except QuerySyntaxError as unclear:
        console.tell(
            f"retold: {' '.join(options.query).strip()}\n        {' ' * unclear.place}^ {unclear.message}"
        )
        return 2
    return code


def _found(options: Namespace, console: Console) -> Iterator[SearchResult]:
    from retold.cli.archive import opened, searched
    from retold.cli.project_names import project_finder

    text = " ".join(options.query).strip()
    with opened(console) as record:
        find = project_finder(record, console)
        if options.substring or options.regex:
            found = searched(lambda: _scan(record, text, options, find), console)
        elif options.any:
            found = searched(lambda: _recall(record, text, options, find), console)
        else:
            found = searched(lambda: _search(record, text, options, find, console), console)
        yield from found
        if not found:
            console.tell("retold: nothing found")
            tell_unknown(record, options, console, _fields(text, options))


def _fields(text: str, options: Namespace) -> Iterable[Field]:
    """Return the fields in a query; letters and patterns have none."""
    if options.substring or options.regex:
        return ()
    from retold.search.query import parse, parse_plain

    return (parse_plain if options.any else parse)(text).fields


def _scan(record: Store, text: str, options: Namespace, find: FindProject) -> Iterator[SearchResult]:
    from retold.search.filters import Filters
    from retold.search.text_scan import scanned

    wanted = add_filters(Filters(find_project=find), options, in_messages=True)
    return scanned(record, text, wanted, options.limit, is_regex=options.regex)


def _recall(record: Store, text: str, options: Namespace, find: FindProject) -> Iterator[SearchResult]:
    from retold.search.filters import Filters
    from retold.search.query import parse_plain
    from retold.search.recall import Recall

    query = parse_plain(text)
    wanted = add_filters(Filters(query.fields, find_project=find), options, in_messages=True)
    return Recall(record, query, wanted).conversations(options.limit)


def _search(
    record: Store, text: str, options: Namespace, find: FindProject, console: Console
) -> Iterator[SearchResult]:
    from retold.search.engine import Search
    from retold.search.filters import Filters
    from retold.search.query import parse

    query = parse(text)
    wanted = add_filters(Filters(query.fields, find_project=find), options, in_messages=True)
    search, left = Search(record, query, wanted), options.limit
    for conversation in search.conversations(options.limit):
        yield conversation
        left -= 1
    if left and not search.is_complete:
        console.tell(
            "retold: not all output of tools was read for the phrase: --limit 1000 reads it, which takes longer"
        )


def _print(conversation: SearchResult, console: Console, *, is_first: bool) -> None:
    from retold.export.text.search_results import conversation_lines

    if not is_first:
        console.line("")
    for pieces in conversation_lines(conversation):
        console.pieces(pieces)

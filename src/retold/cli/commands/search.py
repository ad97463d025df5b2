"""`retold search`: find conversations by their text."""

from __future__ import annotations

from retold.cli.options import add_filter_arguments, make_filters, parse_count, warn_of_unknown_names
from retold.search.query import SYNTAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Iterator

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.search.query import Field
    from retold.search.results import SearchResult

SHOWN = 10


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `search`."""
    parser.add_argument(
        "query",
        nargs="+",
        metavar="QUERY",
        help=SYNTAX,
    )
    add_filter_arguments(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--substring", action="store_true", help="find these letters anywhere in all text")
    how.add_argument("--regex", action="store_true", help="find what this regular expression matches")
    how.add_argument(
        "--any", action="store_true", help="find what comes closest to a question in plain words"
    )
    parser.add_argument(
        "-n", "--limit", type=parse_count, metavar="N", help="at most this many conversations"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per conversation")


def escape_dashes(given: list[str]) -> list[str]:
    """Return the arguments with a blank before each excluded -word, so that argparse does not take it for an option."""
    return [f" {word}" if _is_excluded(word) else word for word in given]


def _is_excluded(word: str) -> bool:
    is_option = word[1:2] == "-" or len(word) == len("-n") or (word[1:2] == "n" and word[2:].isdecimal())
    return word.startswith("-") and not is_option


def run(options: Namespace, console: Console) -> int:
    """Print the conversations, the best first; 1 if nothing is found, 2 if the query has a syntax error."""
    from retold.search.query import QuerySyntaxError

    code = 1
    try:
        for result in _find_results(options, console):
            if options.json:
                from retold.export.text.search_results import result_json

                console.write_json(result_json(result))
            else:
                _print(result, console, is_first=code == 1)
            code = 0
    except QuerySyntaxError as error:
        console.notice(
            f"retold: {' '.join(options.query).strip()}\n        {' ' * error.offset}^ {error.message}"
        )
        return 2
    return code


def _find_results(options: Namespace, console: Console) -> Iterator[SearchResult]:
    from retold.cli.archive import open_archive, run_search

    text = " ".join(options.query).strip()
    search = _scan if options.substring or options.regex else _recall if options.any else _search
    with open_archive(console) as record:
        found = run_search(lambda: search(record, text, options, console), console)
        yield from found
        for damage in record.damage:
            console.notice(f"retold: some text cannot be searched or shown: {damage}")
        if not found:
            console.notice("retold: nothing found")
            warn_of_unknown_names(record, options, console, _fields(text, options))


def _fields(text: str, options: Namespace) -> Iterable[Field]:
    """Return the fields in a query; a substring or regular expression has none."""
    if options.substring or options.regex:
        return ()
    from retold.search.query import parse_query, parse_question

    return (parse_question if options.any else parse_query)(text).fields


def _scan(record: Store, text: str, options: Namespace, console: Console) -> Iterator[SearchResult]:
    from retold.search.text_scan import scan_texts

    filters = make_filters(record, options, console, in_messages=True)
    return scan_texts(record, text, filters, options.limit or SHOWN, is_regex=options.regex)


def _recall(record: Store, text: str, options: Namespace, console: Console) -> Iterator[SearchResult]:
    from retold.search.query import parse_question
    from retold.search.recall import Recall

    query = parse_question(text)
    filters = make_filters(record, options, console, query.fields, in_messages=True)
    return Recall(record, query, filters).find(options.limit or SHOWN)


def _search(record: Store, text: str, options: Namespace, console: Console) -> Iterator[SearchResult]:
    from retold.search.engine import Search
    from retold.search.query import parse_query

    query = parse_query(text)
    filters = make_filters(record, options, console, query.fields, in_messages=True)
    search, left = Search(record, query, filters), options.limit or SHOWN
    for result in search.find(left):
        yield result
        left -= 1
    if left and not search.is_complete:
        console.notice(
            "retold: not all output of tools was read for the phrase: --limit 1000 reads it, which takes longer"
        )


def _print(result: SearchResult, console: Console, *, is_first: bool) -> None:
    from retold.export.text.search_results import format_result

    if not is_first:
        console.write_line("")
    for pieces in format_result(result):
        console.write_styled(pieces)

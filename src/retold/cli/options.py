"""Options that several commands share: filters, dates and counts."""

from __future__ import annotations

from retold.agents import NAMES
from retold.archive.queries.listing import TOOL_KINDS
from retold.search.filters import CHOICES, FILTERS, Filters, parse_choice, parse_moment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterable, Mapping

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.search.query import Field


def add_filter_arguments(parser: ArgumentParser) -> None:
    """Add the filters of lists and searches."""
    parser.add_argument("--agent", type=_choice("agent"), help=f"only this agent's: {', '.join(NAMES)}")
    parser.add_argument(
        "--project", metavar="X", help="a path, a project hash or its first 8 characters, or part of its name"
    )
    parser.add_argument("--model", help="a part of the model's name")
    parser.add_argument(
        "--tool",
        help=f"used this tool, by the agent's name for it or ours, in any case; or a kind: {', '.join(TOOL_KINDS)}",
    )
    parser.add_argument("--file", help="a tool was at work on a file with this in its path")
    parser.add_argument("--role", type=str.lower, choices=CHOICES["role"], help="said by")
    parser.add_argument("--status", type=str.lower, choices=CHOICES["status"])
    parser.add_argument("--tag", help="has this tag")
    parser.add_argument(
        "--home", metavar="LABEL", help="came from the home with this label, or in this folder"
    )
    add_date_arguments(parser)


def add_date_arguments(parser: ArgumentParser) -> None:
    """Add `--since` and `--until`."""
    parser.add_argument(
        "--since",
        type=_date("after"),
        metavar="WHEN",
        help="from 2026-01-27, yesterday, or 7d: today and the six days before, as local time",
    )
    parser.add_argument(
        "--until", type=_date("before"), metavar="WHEN", help="to the end of 2026-01-27, or of yesterday"
    )


def parse_count(text: str) -> int:
    """Return a number of things to show, at least 1."""
    from argparse import ArgumentTypeError

    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no number of rows")
    return int(text)


def _choice(name: str) -> Callable[[str], str]:
    from argparse import ArgumentTypeError

    def parse(text: str) -> str:
        try:
            return parse_choice(name, text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from error

    return parse


def _date(name: str) -> Callable[[str], str]:
    from argparse import ArgumentTypeError

    def check(text: str) -> str:
        try:
            parse_moment(name, text)
        except (ValueError, OverflowError) as error:
            raise ArgumentTypeError(f"{text!r} is no date: try 2026-01-27, 7d or yesterday") from error
        return text

    return check


def make_filters(  # noqa: PLR0913 - two who ask, and what only some commands need
    record: Store,
    options: Namespace,
    console: Console,
    fields: Iterable[Field] = (),
    *,
    in_messages: bool = False,
    without: tuple[str, ...] = (),
) -> Filters:
    """Return the filters in the options and in the fields of a query; unknown projects are looked for on the disk."""

    def find_project(name: str) -> Mapping[str, str]:
        from retold.cli import project_roots

        return project_roots.find_project(record, name, console)

    filters = Filters(fields, find_project=find_project)
    return add_filters(filters, options, in_messages=in_messages, without=without)


def add_filters(
    filters: Filters, options: Namespace, *, in_messages: bool = False, without: tuple[str, ...] = ()
) -> Filters:
    """Add the filters in the options, except those in `without`."""
    for name in FILTERS:
        value = getattr(options, name, None)
        if value is not None and name not in without:
            filters.add(name, value, in_messages=in_messages)
    return filters


def warn_of_unknown_names(
    record: Store, options: Namespace, console: Console, fields: Iterable[Field] = ()
) -> None:
    """Name the projects, tools, models, tags and labels in the options and fields that no session has."""
    from retold.search.listing import unknown_name_messages

    given = [(name, value) for name in FILTERS if (value := getattr(options, name, None)) is not None]
    typed = [(field.name, field.value) for field in fields if not field.is_negated]
    for message in unknown_name_messages(record, [*given, *typed]):
        console.notice(f"retold: {message}")

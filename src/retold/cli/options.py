"""The filters that listing commands share."""

from __future__ import annotations

from retold.agents import NAMES
from retold.archive.queries.conditions import TOOL_KINDS
from retold.search.filters import CHOICES, FILTERS, choice_of, moment

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterable

    from retold.archive.store import Store
    from retold.cli.console import Console
    from retold.search.filters import Filters
    from retold.search.query import Field


def filter_arguments(parser: ArgumentParser) -> None:
    """Add the filters."""
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
    date_arguments(parser)


def date_arguments(parser: ArgumentParser) -> None:
    """Add the filters by time."""
    parser.add_argument(
        "--since",
        type=_date("after"),
        metavar="WHEN",
        help="from 2026-01-27, yesterday, or 7d: today and the six days before, as local time",
    )
    parser.add_argument(
        "--until", type=_date("before"), metavar="WHEN", help="to the end of 2026-01-27, or of yesterday"
    )


def count(text: str) -> int:
    """Return a number of things to show: one at least."""
    from argparse import ArgumentTypeError

    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no number of rows")
    return int(text)


def _choice(name: str) -> Callable[[str], str]:
    from argparse import ArgumentTypeError

    def checked(text: str) -> str:
        try:
            return choice_of(name, text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from error

    return checked


def _date(name: str) -> Callable[[str], str]:
    from argparse import ArgumentTypeError

    def checked(text: str) -> str:
        try:
            moment(name, text)
        except (ValueError, OverflowError) as error:
            raise ArgumentTypeError(f"{text!r} is no date: try 2026-01-27, 7d or yesterday") from error
        return text

    return checked


def add_filters(
    wanted: Filters, options: Namespace, *, in_messages: bool = False, without: tuple[str, ...] = ()
) -> Filters:
    """Return the conditions with what the options ask for, but for some of them."""
    for name in FILTERS:
        value = getattr(options, name, None)
        if value is not None and name not in without:
            wanted.add(name, value, in_messages=in_messages)
    return wanted


def tell_unknown(record: Store, options: Namespace, console: Console, fields: Iterable[Field] = ()) -> None:
    """Tell which names in the options and fields no session has, and which names there are."""
    from retold.search.listing import unknown_names

    asked = [(name, value) for name in FILTERS if (value := getattr(options, name, None)) is not None]
    typed = [(field.name, field.value) for field in fields if not field.is_negated]
    for message in unknown_names(record, [*asked, *typed]):
        console.tell(f"retold: {message}")

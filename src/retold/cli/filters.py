"""The filters that listing commands share."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from datetime import UTC, datetime

from retold.cli.census import home_argument, home_label
from retold.query.dates import parse_since, parse_until
from retold.query.filters import Filter


def filter_arguments(parser: ArgumentParser) -> None:
    """Add the filters."""
    parser.add_argument("--agent", help="only this agent's")
    parser.add_argument(
        "--project", metavar="X", help="a path, a project hash or its first 8 characters, or part of its name"
    )
    parser.add_argument("--model", help="a part of the model's name")
    parser.add_argument("--tool", help="used this tool, by the agent's name for it or ours")
    parser.add_argument("--file", help="a tool was called with this in an argument")
    parser.add_argument("--status", choices=("success", "failure", "interrupted"))
    parser.add_argument("--tag", help="has this tag")
    parser.add_argument("--since", type=_date(parse_since), metavar="WHEN", help="2026-01-27, 7d, yesterday")
    parser.add_argument("--until", type=_date(parse_until), metavar="WHEN", help="the same")
    home_argument(parser)


def count(text: str) -> int:
    """Return a number of things to show: one at least."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no number of rows")
    return int(text)


def _date(parse: Callable[[str, datetime], datetime]) -> Callable[[str], datetime]:
    def parsed(text: str) -> datetime:
        try:
            return parse(text, datetime.now(UTC))
        except (ValueError, OverflowError) as error:
            raise ArgumentTypeError(f"{text!r} is no date: try 2026-01-27, 7d or yesterday") from error

    return parsed


def parse_filter(options: Namespace) -> Filter:
    """Return what the options ask for."""
    return Filter(
        agent=options.agent,
        project=options.project,
        model=options.model,
        tool=options.tool,
        file=options.file,
        status=options.status,
        tag=options.tag,
        home=home_label(options),
        since=options.since,
        until=options.until,
    )

"""A word finds the names of which it is a part, however many such names the archive has."""

import re
from unittest.mock import patch

import pytest

from retold.search import query as expressions
from retold.search.query import match_expression, parse_query
from support.conversation_files import Turn, claude, claude_key
from support.person import Person

NAMES = 120
"""Names with `zone` as a part, one in each conversation."""


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    person = Person(tmp_path_factory.mktemp("names") / "ann")
    for number in range(1, NAMES + 1):
        word = "clock" if number % 3 else "dial"
        claude(
            person.folder, number, [Turn(f"call zone{chr(64 + number % 26 + 1)}Of{number}X", word, "done")]
        )
    person.sync()
    return person


def longest_or(match: str) -> int:
    """Return how many operands the longest OR of an FTS5 expression has; FTS5 joins an OR within an OR."""
    levels, longest = [1], 1
    for found in re.findall(r'"[^"]*"|[()]|\w+', match):
        if found == "(":
            levels.append(1)
        elif found == ")":
            levels.pop()
        elif found == "OR":
            levels[-1] += 1
            longest = max(longest, levels[-1])
    return longest


def test_the_work_for_each_document_does_not_grow_with_the_number_of_names() -> None:
    names = {"zone": [f"zone{number}" for number in range(20_000)]}
    match = match_expression(parse_query("zone clock"), has_positions=True, names=names)
    assert match is not None
    assert all(f'"{name}"' in match for name in names["zone"])
    assert longest_or(match) <= expressions.LARGEST_OR


@pytest.mark.parametrize("group", [2, 7, 1_000])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("zone", range(1, NAMES + 1)),
        ("zone clock", [number for number in range(1, NAMES + 1) if number % 3]),
        ("clock -zone", []),
        ("project:almanac -zone", []),
        ("dial OR zone", range(1, NAMES + 1)),
    ],
)
def test_every_name_with_the_part_is_found(
    person: Person, query: str, expected: list[int], group: int
) -> None:
    with patch.object(expressions, "LARGEST_OR", group):
        found = person.keys("-n", "1000", "--", query)
    assert set(found) == {claude_key(number) for number in expected}

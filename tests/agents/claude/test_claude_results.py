"""What the blocks of a tool's result come to."""

from typing import Any

import pytest

from retold.agents.claude.tool_results import normalise_result


@pytest.mark.parametrize(
    ("content", "text", "rest"),
    [
        ([{"type": "text", "text": "reeds"}, {"type": "text", "text": "herons"}], "reeds\nherons", None),
        ([{"type": "text", "text": "reeds"}, {"type": "map"}], "reeds", [{"type": "map"}]),
        (7, None, [7]),
        (None, None, None),
    ],
    ids=["texts", "an unknown block", "a number", "nothing"],
)
def test_texts_are_joined_by_lines_and_other_blocks_are_kept(
    content: Any, text: str | None, rest: list[Any] | None
) -> None:
    found = normalise_result(content, None, None)
    assert (found.text, found.rest, found.is_error) == (text, rest, False)

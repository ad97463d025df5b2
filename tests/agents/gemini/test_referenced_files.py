"""A block of referenced files ends at the last end mark that is a line of its own."""

import pytest

from retold.agents.gemini.prompt_text import prompt_of, split_user_content
from retold.agents.gemini.state import Notes

OPENS = "\n--- Content from referenced files ---\nContent from @tide.py:\n"
END = "\n--- End of content ---"


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        (f"Mend it.{OPENS}high = 2{END}", "Mend it."),
        (f"Mend it.{OPENS}high = 2{END}\nAnd then?", "Mend it.\nAnd then?"),
        (f"Mend it.{OPENS}a = '--- End of content ---'\nhigh = 2{END}\nAnd then?", "Mend it.\nAnd then?"),
        (f"Mend it.{OPENS}a = 1{END}\nhigh = 2{END}\nAnd then?", "Mend it.\nAnd then?"),
        (f"Mend it.{OPENS}a = '--- End of content ---'\nhigh = 2", "Mend it."),
        (f"Mend it.{OPENS}--- End of content --- is a mark\nhigh = 2", "Mend it."),
        (f"Mend it.{OPENS}a = 1  # --- End of content ---\nhigh = 2", "Mend it."),
        (f"Mend it.{OPENS}a = 1\r{END}\r\nAnd then?", "Mend it.\r\nAnd then?"),
    ],
)
def test_a_mark_within_a_line_of_a_file_ends_nothing(text: str, typed: str) -> None:
    assert prompt_of(split_user_content(text, Notes("session.json"))) == typed
    assert prompt_of(split_user_content([{"text": text}], Notes("session.json"))) == typed


def test_the_last_part_that_is_an_end_mark_ends_a_block_of_parts() -> None:
    texts = ["Mend it.", OPENS[:38], "\nContent from @tide.py:\n", END, "high = 2", END, "And then?"]
    parts = split_user_content([{"text": text} for text in texts], Notes("session.json"))
    assert prompt_of(parts) == "Mend it.And then?"


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        (f"Why '{OPENS[1:38]}'?", f"Why '{OPENS[1:38]}'?"),
        (
            f"Why '{OPENS[1:38]}'?\nLook at @tide.py{OPENS}high = 2{END}",
            f"Why '{OPENS[1:38]}'?\nLook at @tide.py",
        ),
        (f"{OPENS[1:]}high = 2{END}\nMend it.", "Mend it."),
    ],
)
def test_a_mark_within_a_line_of_a_prompt_begins_no_block(text: str, typed: str) -> None:
    assert prompt_of(split_user_content(text, Notes("session.json"))) == typed

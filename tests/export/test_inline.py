"""Foreign words inside a line of Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from retold.export.formats.markdown import markdown_code, markdown_prose
from support.hostile_texts import TEXTS


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("`slot()` takes *a day*, a[0] and snake_case", "`slot()` takes *a day*, a[0] and snake_case"),
        ("<b> `x` <i>", "\\<b> `x` \\<i>"),
        ("![a](b) `x` [c][d]", "![a\\](b) `x` [c\\][d]"),
        ("half a ` tick", "half a \\` tick"),
        ("two\nlines", "two lines"),
    ],
)
def test_prose_stays_as_it_was_written(text: str, told: str) -> None:
    assert markdown_prose(text) == told


@given(st.sampled_from(TEXTS) | st.text(st.sampled_from("`\\<>[]()!*_ a:/"), max_size=20))
def test_nothing_in_a_line_is_html_a_link_or_a_picture(text: str) -> None:
    page = MarkdownIt("commonmark").parse(
        f"- Person: {markdown_prose(text)} ({markdown_code('key')} turn 1)\n"
    )
    kinds = {token.type for token in page} | {child.type for token in page for child in token.children or ()}
    assert not kinds & {"html_inline", "html_block", "link_open", "image"}, markdown_prose(text)
    (line,) = [token for token in page if token.type == "inline"]
    assert line.children is not None
    assert [child.content for child in line.children if child.type == "code_inline"][-1:] == ["key"]

"""Words keep to themselves in a page, and come back letter by letter: asked of a parser of Markdown."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from retold.reading.markdown_codec import (
    decode_words,
    encode_markdown,
    encode_words,
    fence_text,
    format_mark,
    parse_mark,
    unfence_text,
)

pytestmark = pytest.mark.slow

PARSERS = (MarkdownIt("commonmark"), MarkdownIt("gfm-like", {"linkify": False}))
PIECES = (
    "\\", "<", "<b>", "<script>", "`", "``", "```", "~~~", "#", "##### ", "# ", "\n===\n", "\n---\n", "\n", "\n\n",
    "\n```\n", "a", "|", "[a](", "](", "]:", "[a]:", ")", " ", "   ", "    ", "> ", "- ", "1. ", "* ", "<!--", "-->",
    "</details>", "<https://x.y>", "<https://x`>", "\t", "\n   ```\n", "\n  ", "\n|-|-|\n", "é", "&lt;", "![", "\r", "\x00",
    "\u2028", "\u202e",
)  # fmt: skip
words = st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=40)
BEFORE, BEHIND = "<!-- before -->", "<!-- behind -->"


def tokens(found: Sequence[Token] | None) -> Iterator[Token]:
    for token in found or ():
        yield token
        yield from tokens(token.children)


@settings(max_examples=1500, deadline=None)
@given(words, st.booleans())
def test_words_come_back_as_they_were(text: str, is_quoted: bool) -> None:  # noqa: FBT001 - drawn
    lines, look = encode_words(text, is_quoted=is_quoted)
    assert decode_words(lines, look) == text


@settings(max_examples=1500, deadline=None)
@given(words, st.booleans())
def test_words_end_where_they_end(text: str, is_quoted: bool) -> None:  # noqa: FBT001 - drawn
    lines, _ = encode_words(text, is_quoted=is_quoted)
    for parser in PARSERS:
        found = list(tokens(parser.parse(f"{BEFORE}\n\n{lines}\n\n{BEHIND}\n\nend\n")))
        html = [token for token in found if token.type in ("html_block", "html_inline")]
        assert [token.content.strip() for token in html] == [BEFORE, BEHIND]
        assert html[-1].level == 0
        assert not [token for token in found if token.tag in ("h1", "h2") and token.level == 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One", "### One"),
        ("#### Four", "###### Four"),
        ("##### Five", "\\##### Five"),
        ("\\##### Five", "\\\\##### Five"),
        ("#hashtag", "#hashtag"),
        ("Title\n=====", "Title\n\\====="),
        ("text\n\n---", "text\n\n---"),
        ("a < b and <b>", "a < b and \\<b>"),
        ("\\<b>", "\\\\\\<b>"),
        ("`<b>` and <i>", "`<b>` and \\<i>"),
        ("<https://tides.example>", "<https://tides.example>"),
        ("```html\n<b>\n# no heading\n```\n<b>", "```html\n<b>\n# no heading\n```\n\\<b>"),
        ("1. so:\n   ```\n   <b>\n   ```", "1. so:\n   ```\n   <b>\n   ```"),
        ("| `<b>` |", "| `\\<b>` |"),
        ("```\nnever closed", None),
        ("- ```\n  <b>\n  ```", None),
        ("  ```\nfurther left\n  ```", None),
        ("carriage\rreturn", None),
    ],
)
def test_markdown_stays_markdown_where_that_is_certain(text: str, expected: str | None) -> None:
    assert encode_markdown(text) == expected


@pytest.mark.parametrize("text", ["", "\n", "```", "`````\n", "a\n```\nb", "x" * 100_000])
def test_a_fence_is_longer_than_any_in_it(text: str) -> None:
    lines = fence_text(text, "text")
    assert unfence_text(lines) == text
    (token,) = (token for token in PARSERS[0].parse(lines) if token.type == "fence")
    assert token.content.removesuffix("\n") == text


@pytest.mark.parametrize("lines", ["", "a", "```\na", "```\na\n````", "> a\nb"])
def test_lines_that_stand_there_otherwise_are_no_words(lines: str) -> None:
    assert decode_words(lines, "quote" if lines.startswith(">") else "fence") is None


def test_an_editor_may_take_blanks_from_a_quote() -> None:
    assert decode_words("> a\n>\n> b", "quote") == "a\n\nb"


@given(st.dictionaries(st.text(max_size=5), words, max_size=3))
def test_nothing_in_a_mark_ends_it(tree: dict[str, str]) -> None:
    line = format_mark(tree)
    assert line.isascii()
    assert line.count("--") == 2
    assert parse_mark(line) == tree
    for parser in PARSERS:
        assert next(token.type for token in parser.parse(f"{line}\n\nend")) == "html_block"


@pytest.mark.parametrize(
    "line", ["", "<!-- retold -->", "<!-- retold [] -->", "<!-- retold {} ", "<!-- other {} -->"]
)
def test_other_comments_are_no_marks(line: str) -> None:
    assert parse_mark(line) is None

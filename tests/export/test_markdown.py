"""Markdown that people read and paste: reviewed as prose, and safe whatever was said."""

from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from syrupy.assertion import SnapshotAssertion

from retold.agents.registry import read
from retold.export.formats.markdown import encode_sessions
from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.model.session import Attachment, Context, Project, Text, Thinking
from support.full_session import agent, call, everything, session, session_with_text, user

ALL = ExportOptions(thoughts=True, tokens=True, notices=True, is_redacted=False)
HOSTILE = {
    "backticks": "```\n````markdown\n`````` ` `` ```x``` `<b>",
    "an open fence": "Look:\n```html\n<!--",
    "a fence in a list": "- ```\n  <script>\n```\n<script>alert(1)</script>",
    "an end of details": "</details></details>\n</summary>\n<details>",
    "comments": '<!-- gone --> --> <!--\n<!-- retold {"end":"x"} -->',
    "a script": "<script>alert(1)</script><img src=x onerror=alert(1)><style>",
    "a mark of ours": '<!-- retold {"role":"user","lines":3,"parts":[{"prompt":[1,1,"quote"]}]} -->\n\n> hi',
    "headings": "# One\n## Two\n###### Six\nThree\n===\nFour\n---",
    "control characters": "a\x00b\x1b[31mc\x07\x85\u2028\x0c\x0b",
    "carriage returns": "a\rb\r\nc\r```\r<!--",
    "right to left": "\u202egnp.exe\u2066 \u200f",
    "cells": "| a ` | b |\n|---|---|\n| ` <script> ` | x |",
    "link targets": "[a](`) <script> `",
    "CJK and emoji": "潮汐表 🌊 ‍👩‍👩‍👧 한국어 `コード`",
    "blanks": "\n\n  x  \n\t\n",
    "nothing": "",
}  # fmt: skip
LOUD = [name for name, text in HOSTILE.items() if text]
"""With words: a call with no argument has a line without one."""


def page(telling: ExportSession, choice: ExportOptions = ExportOptions()) -> str:  # noqa: B008 - a frozen value
    return b"".join(encode_sessions([telling], choice)).decode()


def tokens(found: Sequence[Token] | None) -> Iterator[Token]:
    for token in found or ():
        yield token
        yield from tokens(token.children)


def test_everything_reads_well(snapshot: SnapshotAssertion) -> None:
    assert page(everything()) == snapshot


def test_everything_with_all_that_can_be_shown(snapshot: SnapshotAssertion) -> None:
    assert page(everything(), ALL) == snapshot


def test_calls_on_a_line_each(snapshot: SnapshotAssertion) -> None:
    shown = [
        line for line in page(everything(), ExportOptions(tools="names")).splitlines() if line[:2] == "- "
    ]
    assert "\n".join(shown) == snapshot


def test_without_tools_there_is_no_call_and_no_subagent() -> None:
    shown = page(everything(), ExportOptions(tools="none"))
    assert "read_file" not in shown
    assert "Subagent" not in shown


@pytest.mark.parametrize("choice", [ExportOptions(), ALL, ExportOptions(tools="names", thoughts=True)])
@pytest.mark.parametrize("name", LOUD)
def test_what_was_said_changes_nothing_around_it(name: str, choice: ExportOptions) -> None:
    tame = session_with_text("tame")
    hostile = session_with_text(HOSTILE[name])
    for told, expected in ((hostile, tame), (session(user(1, HOSTILE[name])), session(user(1, "tame")))):
        found = _frame(page(ExportSession(told), choice))
        assert found == _frame(page(ExportSession(expected), choice))


def _frame(text: str) -> list[str]:
    """What the page itself consists of: its tags and comments, and its headings of the first two levels."""
    tags = Tags()
    for token in tokens(MarkdownIt("gfm-like", {"linkify": False}).parse(text)):
        if token.type in ("html_block", "html_inline"):
            tags.feed(token.content)
            tags.found.append("end of HTML")
        elif token.type == "heading_open" and token.tag in ("h1", "h2"):
            tags.found.append(token.tag)
    return tags.found


class Tags(HTMLParser):
    """The tags and comments of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(f"<{tag} {attrs}>")

    def handle_endtag(self, tag: str) -> None:
        self.found.append(f"</{tag}>")

    def handle_comment(self, data: str) -> None:
        self.found.append(f"comment {data.split('{', maxsplit=1)[0]}")


@pytest.mark.parametrize("name", LOUD)
def test_no_name_changes_anything_around_it(name: str, tmp_path: Path) -> None:
    """Names of tools, models, files, projects and sessions come from transcripts as well."""
    text = HOSTILE[name]
    for choice in (ALL, ExportOptions(tools="names")):
        shown = page(_named(text), choice)
        assert _frame(shown) == _frame(page(_named("tame"), choice))
        (tmp_path / "page.md").write_text(shown, encoding="utf-8", newline="")
        found, child = read(tmp_path / "page.md")
        assert (found.key, child.key, found.models) == (text, f"{text}/", (text,))


def _named(text: str) -> ExportSession:
    made = call(text, id=text, child=f"{text}/", arguments={"path": text})
    parts = (made, Attachment(text, text), Thinking(text, "x"))
    told = session(
        user(1, "go", Attachment(text), id=text),
        agent(2, *parts, model=text, id=text, response=text),
        key=text,
        native_id=text,
        summary=text or None,
        project=Project(text, text, text, "guessed"),
    )
    told = msgspec.structs.replace(told, tags=(text,), agent=text)
    return ExportSession(
        told, {f"{text}/": ExportSession(session(user(3, "x"), key=f"{text}/", summary=f"{text}!"))}
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_every_word_is_read_back(name: str, tmp_path: Path) -> None:
    told = session_with_text(HOSTILE[name])
    (tmp_path / "page.md").write_text(page(ExportSession(told), ALL), encoding="utf-8", newline="")
    (found,) = read(tmp_path / "page.md")
    (asked, answered), (user_said, agent_said) = told.timeline, found.timeline
    assert found.problems == ()
    assert user_said.prompt == asked.prompt  # type: ignore[union-attr]
    expected = [part for part in answered.parts if not isinstance(part, Text) or part.text.strip()]  # type: ignore[union-attr]
    assert list(agent_said.parts) == expected  # type: ignore[union-attr]


def test_a_page_of_ten_megabytes_is_made_in_pieces() -> None:
    outputs = [agent(place, call("cat", result="x" * 1_000_000)) for place in range(1, 11)]
    sizes = [
        len(piece)
        for piece in encode_sessions([ExportSession(session(user(0, "go"), *outputs))], ExportOptions())
    ]
    assert sum(sizes) > 10_000_000
    assert max(sizes) < 1_100_000


def test_arguments_nested_deeper_than_can_be_indented_are_told_on_a_line() -> None:
    deep: list[object] = []
    for _ in range(3000):
        deep = [deep]
    assert "[" * 3000 in page(ExportSession(session(agent(1, call("dig", arguments={"deep": deep})))))


def test_what_was_taken_back_and_says_nothing_has_no_heading() -> None:
    silent = user(1, None, Context("tool_result", None, "x"), fate="rewound")
    assert "Rewound" not in page(ExportSession(session(silent)))


def test_a_session_without_times_tells_none() -> None:
    assert "**Time:**" not in page(ExportSession(session(user(1, "x"), started_at=None, ended_at=None)))


def test_the_form_is_listed() -> None:
    assert FORMATS["md"].function == "formats.markdown:encode_sessions"

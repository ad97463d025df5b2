"""Pages of transcripts that were written to do harm: whatever a text says, it stays in its box."""

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markupsafe import escape

from retold.agents.registry import NotASession, read
from retold.export.formats.registry import ExportOptions, ExportSession
from retold.export.html.blocks import LONGEST, clipped_length, render_markdown, show_control_chars
from retold.export.html.page import encode_index, encode_sessions
from retold.model.session import Message, Opaque
from support.hostile_texts import SHORT, TEXTS
from support.html_sessions import assistant_message, call, export_session, session_with_text, user_message

pytestmark = pytest.mark.slow

ALL = ExportOptions(thoughts=True, tokens=True, notices=True)
VOID = {"br", "hr", "img", "meta"}
TAGS = {
    "a", "article", "bdi", "blockquote", "body", "br", "code", "dd", "details", "div", "dl", "dt", "em", "footer", "h1", "h2",
    "h3", "h4", "h5", "h6", "head", "header", "hr", "html", "img", "li", "main", "meta", "nav", "ol", "p", "pre", "s", "section",
    "span", "strong", "style", "summary", "table", "tbody", "td", "th", "thead", "time", "title", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {
    "alt", "aria-hidden", "aria-label", "charset", "class", "content", "datetime", "dir", "href", "http-equiv", "id", "lang",
    "name", "open", "rel", "role", "scope", "src", "start", "tabindex", "title",
}  # fmt: skip
LINKS = re.compile(r"#[\w-]+|https?://|mailto:|\./")
BOXES = {("div", "prose"), ("pre", None), ("pre", "code"), ("pre", "diff"), ("style", None)}
"""In these a text decides what is in them."""


class Skeleton(HTMLParser):
    """The elements of a page, outside of the boxes, and everything that is wrong with any of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.outside: list[Any] = []
        self.wrong: list[Any] = []
        self.stack: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()
        self.wrong += self.stack

    @property
    def is_in_box(self) -> bool:
        return any(element in BOXES for element in self.stack)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if not self.is_in_box:
            self.outside.append((tag, given.get("id"), given.get("class"), sorted(given)))
        self.wrong += [tag] if tag not in TAGS else []
        self.wrong += sorted(given.keys() - ATTRIBUTES)
        self.wrong += [given["href"]] if tag == "a" and not LINKS.match(given.get("href") or "#x") else []
        self.wrong += (
            [given["src"]]
            if not (given.get("src") or "data:image/png;base64,").startswith("data:image/png;")
            else []
        )
        if tag not in VOID:
            self.stack.append((tag, given.get("class")))

    def handle_endtag(self, tag: str) -> None:
        if not self.stack or self.stack[-1][0] != tag:
            self.wrong.append(f"</{tag}>")
        else:
            self.stack.pop()

    def handle_comment(self, data: str) -> None:
        self.wrong.append(data)


def page(told: ExportSession, choice: ExportOptions = ALL) -> str:
    return b"".join(encode_sessions([told], choice)).decode()


def harmless(text: str) -> str:
    """Return a text of the same shape that says nothing."""
    patch = re.match(r"\s*\*\*\* Begin Patch|", text)
    assert patch
    return patch.group() + re.sub(r"\S", "x", text[patch.end() :])


@pytest.mark.parametrize("text", TEXTS)
def test_a_hostile_text_changes_nothing_outside_its_box(text: str) -> None:
    hostile, quiet = (
        Skeleton(page(session_with_text(text))),
        Skeleton(page(session_with_text(harmless(text)))),
    )
    assert hostile.wrong == []
    assert hostile.outside == quiet.outside


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.sampled_from([*SHORT, "\n", " ", "`", "```", "<", "](", "\\"]) | st.text(max_size=20), max_size=6
    ).map("".join)
)
def test_nor_does_any_other(text: str) -> None:
    shown = Skeleton(page(session_with_text(text)))
    assert shown.wrong == []
    assert shown.outside == Skeleton(page(session_with_text(harmless(text)))).outside


@pytest.mark.parametrize("text", TEXTS)
def test_nor_in_an_index(text: str) -> None:
    def index(told: str) -> Skeleton:
        return Skeleton(
            b"".join(encode_index([(told, session_with_text(told).session)], ExportOptions())).decode()
        )

    assert index(text).wrong == []
    assert index(text).outside == index(harmless(text)).outside


@pytest.mark.parametrize("markdown", ["    {}", "```\n{}\n```", "~~~html\n{}\n~~~", "`{}`"])
def test_tags_in_code_are_shown_as_they_are_written(markdown: str) -> None:
    code = "<b>tide</b> &amp; <script>neap</script>"
    rendered = render_markdown(markdown.format(code), 3)
    assert rendered is not None
    assert re.findall(r"<(?:b|script)", rendered) == []
    assert code in rendered.striptags()


def test_every_page_forbids_what_it_has_no_use_for() -> None:
    text = page(session_with_text("x"))
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', text)
    rules = policy.replace("&#39;", "'").split("; ")
    assert rules[0] == "default-src 'none'"
    assert rules[2:] == ["img-src data:", "base-uri 'none'", "form-action 'none'"]
    assert re.fullmatch(r"style-src 'sha256-[\w+/]{43}='", rules[1])
    assert '<meta name="referrer" content="no-referrer">' in text
    assert text.index("Content-Security-Policy") < text.index("<title>")


def test_a_style_sheet_cannot_end_itself(tmp_path: Path) -> None:
    (tmp_path / "style.css").write_text("p::after { content: '</style><script>' }")
    assert Skeleton(page(export_session(user_message("x")), ExportOptions(templates=tmp_path))).wrong == []


def test_what_hides_is_shown() -> None:
    assert (
        show_control_chars("a\u202eb\u200bc\x00d\x7fe\ufefff\ud800g")
        == "a⟨U+202E⟩b⟨U+200B⟩c⟨U+0000⟩d⟨U+007F⟩e⟨U+FEFF⟩f\ufffdg"
    )
    assert (
        show_control_chars("\x1b[1;31mred\x1b[0m\x1b[K\r\nnext\rover\x1b[2J") == "red\nnext\nover⟨U+001B⟩[2J"
    )
    assert show_control_chars("a\U000e0041\U000e0100\ufe0f\ufe0e") == "a⟨U+E0041⟩⟨U+E0100⟩\ufe0f⟨U+FE0E⟩"
    for fine in ("naïve\ttab\nline", "葛\U000e0100", "❤️ 👩\u200d🚀", "می\u200cکنم", "שלום عالم"):
        assert show_control_chars(fine) == fine


def test_what_hides_is_shown_wherever_it_stands() -> None:
    text = page(session_with_text("a\u202eb"))
    assert "\u202e" not in text
    assert text.count("⟨U+202E⟩") > 40


def test_a_page_can_be_written_whatever_the_text() -> None:
    assert "\ufffd" in page(session_with_text("\ud800 \udfff"))
    deep: Any = "x"
    for _ in range(900):
        deep = [deep]
    assert "x" in page(export_session(assistant_message(Opaque(deep), call("deep", arguments={"a": deep}))))


@pytest.mark.shared
def test_every_conversation_of_the_corpus_has_a_whole_page(shared: Path) -> None:
    pages = 0
    for file in sorted((shared / "corpus").rglob("*.json*")):
        with suppress(NotASession):
            for session in read(file):
                text = page(ExportSession(session))
                pages += 1
                assert Skeleton(text).wrong == [], file
                for told in (entry.prompt for entry in session.timeline if isinstance(entry, Message)):
                    assert (
                        told is None
                        or clipped_length(told)
                        or str(escape(show_control_chars(told.strip("\n")))) in text
                    ), file
    assert pages > 200


SLOW = {
    "brackets": "[" * LONGEST,
    "pictures": "![" * (LONGEST // 2),
    "emphasis": "*a **a " * (LONGEST // 7),
    "underscores": "_a__" * (LONGEST // 4),
    "links": "[a](" * (LONGEST // 4),
    "references": "[a][" * (LONGEST // 4),
    "angles": "<" * LONGEST,
    "backticks": "".join("`" * number + " " for number in range(190)),
    "table": "|a" * 100 + "\n" + "|-" * 100 + "\n" + ("|b" * 100 + "\n") * 90,
    "code": "```python\n" + "'''" * (LONGEST // 4) + "\n```",
    "json": "```json\n" + "[" * (LONGEST - 20) + "\n```",
}


def _timed(text: str) -> Iterator[float]:
    for _ in range(2):
        start = time.perf_counter()
        assert render_markdown(text, 4) is not None
        yield time.perf_counter() - start


@pytest.mark.parametrize("name", SLOW)
def test_no_text_of_a_page_takes_long(name: str) -> None:
    """The bound is wide: without a limit on their length, some of these take minutes."""
    assert min(_timed(SLOW[name])) < 5

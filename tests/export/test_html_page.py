"""Pages: what is on them, what is not and says so, and how they come into being."""

import re
import tracemalloc
from html.parser import HTMLParser
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from retold.export.diffs import MOST_LINES, diff_texts
from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.export.html.blocks import HEAD, LANGUAGES, LARGEST, LONGEST, TAIL, _lexer, render_picture
from retold.export.html.page import encode_index, encode_sessions
from retold.model.session import (
    AgentDisplay,
    Attachment,
    Context,
    DiffDisplay,
    Entry,
    Opaque,
    Project,
    Text,
    TextDisplay,
    Thinking,
)
from support.html_sessions import (
    PIXEL,
    assistant_message,
    call,
    event,
    everything,
    export_session,
    message,
    user_message,
)

ALL = ExportOptions(thoughts=True, tokens=True, notices=True)


class Words(HTMLParser):
    """The words of a page, as somebody reads them, and the ids in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given["href"] or ""] if "href" in given and tag == "a" else []

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def page(told: ExportSession, choice: ExportOptions = ALL) -> str:
    return b"".join(encode_sessions([told], choice)).decode()


def words(told: ExportSession, choice: ExportOptions = ALL) -> str:
    return " ".join("".join(Words(main(page(told, choice))).words).split())


def main(text: str) -> str:
    """Return what is between the head and the end: the style has a page of its own."""
    return text[text.index("<body") :]


def said(*entries: Entry, choice: ExportOptions = ALL) -> str:
    return words(export_session(*entries), choice)


def test_a_page_with_a_bit_of_everything(snapshot: SnapshotAssertion) -> None:
    assert main(page(everything())) == snapshot


def test_a_page_of_the_conversation_alone(snapshot: SnapshotAssertion) -> None:
    assert main(page(everything(), ExportOptions(tools="names"))) == snapshot


def test_it_is_one_of_the_forms() -> None:
    form = FORMATS["html"]
    assert (form.suffix, form.holds_many, form.function) == (
        ".html",
        False,
        "html.page:encode_sessions",
    )


def test_every_anchor_is_there_once_and_every_link_in_the_page_leads_to_one() -> None:
    read = Words(page(everything()))
    assert len(set(read.ids)) == len(read.ids)
    assert {link[1:] for link in read.links if link.startswith("#")} <= set(read.ids)
    assert {"m1", "m2", "m2-1-1", "m2-1-2", "m7"} <= set(read.ids)


def test_a_message_has_the_same_anchor_whatever_is_shown() -> None:
    told = export_session(message("assistant", Thinking(None, "quiet")), user_message("loud"))
    assert 'id="m2"' in page(told, ExportOptions())
    assert 'id="m1"' not in page(told, ExportOptions())
    assert 'id="m2"' in page(told)


def test_what_is_left_out_is_told() -> None:
    told = export_session(
        user_message("Hello"), assistant_message(Thinking("a", "b"), call("ls")), event("notice", "psst"), message("user", Context("hook", "x"), Opaque(1))
    )  # fmt: skip
    assert "Left out here: 1 thought, 1 tool call, 3 notices. All of it: retold show gemini:made" in words(
        told, ExportOptions(tools="none")
    )
    assert "--thoughts --tools full --notices" in words(told, ExportOptions(tools="none"))
    assert "Left out here: 1 thought, the details of 1 tool call, 3 notices." in words(
        told, ExportOptions(tools="names")
    )
    assert "Left out" not in words(told)


def test_a_page_says_whether_secrets_are_taken_out() -> None:
    assert "Secrets that were recognised have been taken out." in words(
        export_session(user_message("x")), ExportOptions()
    )
    assert "Secrets have not been taken out." in words(
        export_session(user_message("x")), ExportOptions(is_redacted=False)
    )


def test_a_conversation_of_which_nothing_is_left_has_a_page() -> None:
    told = words(export_session(title=None, started_at=None, ended_at=None))
    assert "A conversation without a title" in told
    assert "Nothing that was said in this conversation is left" in told


def test_of_ten_megabytes_the_beginning_and_the_end_are_shown() -> None:
    output = "first\n" + "x" * 10_000_000 + "\nlast"
    text = page(export_session(assistant_message(call("cat", result=output))))
    assert len(text) < 3 * (HEAD + TAIL)
    assert f"{len(output) - HEAD - TAIL:,} characters are left out here" in text
    assert "first\nxxx" in text
    assert "xxx\nlast</pre>" in text


def test_nothing_hides_at_the_beginning_or_the_end_of_a_long_text() -> None:
    output = "heron\u202e\n" + "x" * (HEAD + TAIL) + "\nheron\u202e"
    text = page(export_session(assistant_message(call("cat", result=output))))
    assert "\u202e" not in text
    assert text.count("heron⟨U+202E⟩") == 2


@pytest.mark.parametrize("length", [LONGEST, LONGEST + 1, HEAD + TAIL, HEAD + TAIL + 1])
def test_a_long_text_loses_nothing_without_a_word(length: int) -> None:
    text = "word " * (length // 5)
    text += "." * (length - len(text))
    for told in (user_message(text), assistant_message(text), assistant_message(call("cat", result=text))):
        shown = main(page(export_session(told, title="t")))
        assert ("left out here" in shown) == (length > HEAD + TAIL)
        assert shown.count("word") >= min(length, HEAD + TAIL) // 5 - 1


def test_a_page_is_written_while_it_is_told() -> None:
    """Twenty megabytes in two hundred answers take no more memory than a few of them."""
    outputs = [assistant_message(call("cat", result=f"{number} " * 40_000)) for number in range(100)]
    told = export_session(user_message("Show me all"), *outputs)
    tracemalloc.start()
    size = sum(map(len, encode_sessions([told], ALL)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 7_000_000
    assert peak < 4_000_000


def test_a_prompt_of_several_texts_is_shown_once() -> None:
    told = message("user", Text("Hello "), Context("hook", "it is late"), Text("there"), prompt="Hello there")
    assert said(told).count("Hello there") == 2  # once in the table of contents
    assert (
        said(message("user", Context("hook", "x"), prompt="typed"), choice=ExportOptions()).count("typed")
        == 2
    )


def test_headings_of_an_answer_come_below_those_of_the_page() -> None:
    text = page(
        export_session(user_message("x"), assistant_message("# One\n\n### Three\n\n# Again\n\n###### Six"))
    )
    assert re.findall(r"<(h\d)[^>]*>", main(text)) == ["h1", "h2", "h2", "h2", "h3", "h4", "h5", "h4", "h5"]


def test_a_link_to_the_web_is_one_and_a_path_is_written_out() -> None:
    text = page(
        export_session(
            assistant_message(
                "[docs](https://example.org/a) [here](src/a.py) ![cat](https://example.org/cat.png)"
            )
        )
    )
    assert (
        '<a href="https://example.org/a" rel="noopener noreferrer nofollow">docs</a> here (src/a.py)' in text
    )
    assert (
        '<a href="https://example.org/cat.png" rel="noopener noreferrer nofollow">[picture: cat]</a>' in text
    )


def test_every_language_that_is_coloured_is_known() -> None:
    assert all(_lexer(language) for language in LANGUAGES)
    assert _lexer("of no people") is None


def test_markup_in_an_answer_is_shown_as_it_was_written() -> None:
    told = said(assistant_message("Use <b>this</b>, not\n\n<script>that()</script>\n\nand `<i>`"))
    assert "Use <b>this</b>, not <script>that()</script> and <i>" in told


def test_a_picture_is_shown_only_if_it_is_one() -> None:
    assert "data:image/png;base64," in str(render_picture(Attachment(None, "text/html", PIXEL), "x"))
    for data in ("PHN2Zy8+", "not base64", PIXEL + '"><script>', "R0lG", "A" * (LARGEST * 2), None):
        assert render_picture(Attachment(None, "image/png", data), "x") is None
    told = said(user_message("see", Attachment("plan.svg", "image/svg+xml", "PHN2Zy8+")))
    assert "Attached: plan.svg, 6 bytes that are not shown here" in told


def test_a_change_is_told_once_and_what_it_does_not_tell_beside_it() -> None:
    shown = DiffDisplay("a", "-old\n+new", None, None)
    told = said(
        assistant_message(
            call(
                "edit", arguments={"file_path": "a", "old_string": "old", "new_string": "new"}, display=shown
            )
        )
    )
    assert "Change -old +new" in told
    assert "old_string" not in told
    other = said(
        assistant_message(call("edit", arguments={"file_path": "a", "new_string": "newer"}, display=shown))
    )
    assert "new_string newer" in other


def test_changes_are_found_in_what_a_call_was_given() -> None:
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]
    assert "-a +b @@ -1 +1 @@ -c +d" in said(assistant_message(call("MultiEdit", arguments={"edits": edits})))
    assert "-one +two" in said(assistant_message(call("e", display=DiffDisplay("a", None, "one", "two"))))
    assert "*** Begin Patch" in said(
        assistant_message(call("apply_patch", arguments={"input": "*** Begin Patch\n+x"}))
    )
    odd = [{"old_string": "a"}, 7]
    assert '"old_string": "a"' in said(assistant_message(call("MultiEdit", arguments={"edits": odd})))
    listed = DiffDisplay("a", "-a\n+b\n-c\n+d", None, None)
    assert "edits" not in said(
        assistant_message(call("MultiEdit", arguments={"edits": edits}, display=listed))
    )
    assert diff_texts("a\n" * MOST_LINES, "b").endswith("-a\n+b")


def test_what_the_agent_showed_stands_in_for_a_result() -> None:
    assert "Shown a screen" in said(assistant_message(call("sh", display=TextDisplay("a screen"))))
    assert "Answer fine" in said(
        assistant_message(call("agent", "agent", display=AgentDisplay("a", result="fine")))
    )


def test_a_subagent_that_is_not_there_is_named() -> None:
    assert "Its subagent is the session gemini:gone" in said(
        assistant_message(call("agent", child="gemini:gone"))
    )


def test_subagents_inside_of_each_other_have_an_end() -> None:
    told = export_session(assistant_message("the deepest"), key="k0")
    for depth in range(1, 60):
        told = export_session(
            assistant_message(call("agent", child=f"k{depth - 1}")), key=f"k{depth}", subagents=[told]
        )
    assert page(told).count("Subagent:") == 6


def test_a_folder_of_templates_wins(tmp_path: Path) -> None:
    (tmp_path / "entry.html").write_text(
        "<p>{{ entry.kind }} of mine</p>{% for block in entry.blocks %}{{ block }}{% endfor %}"
    )
    (tmp_path / "style.css").write_text("p { color: teal; }")
    text = page(export_session(user_message("<b>Hello")), ExportOptions(templates=tmp_path))
    assert "<p>prompt of mine</p>" in text
    assert "&lt;b&gt;Hello" in text
    assert "<style>p { color: teal; }</style>" in text


def test_a_template_reaches_nothing_but_what_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("{{ page.__class__.__mro__ }}")
    with pytest.raises(Exception, match="unsafe"):
        page(export_session(), ExportOptions(templates=tmp_path))


def test_an_index_leads_to_every_page_by_project(snapshot: SnapshotAssertion) -> None:
    there = Project("/home/ann/old/bakery", None, None, "recorded")
    sessions = [
        ("gemini-made.html", everything().session),
        ("a b/ü.html", export_session(project=there, title=None, cost_usd=None).session),
        ("javascript:alert(1)", export_session(project=Project(None, None, None, "none"), started_at=None, ended_at=None).session),
        ("c.html", export_session(user_message("x"), title="Second <here>").session),
    ]  # fmt: skip
    assert main(b"".join(encode_index(sessions, ExportOptions())).decode()) == snapshot

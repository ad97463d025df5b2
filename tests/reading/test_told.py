"""What retold wrote, it reads back: the same words from Markdown, the very same sessions from JSON."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retold.agents.registry import NotASession, read
from retold.demo.home import make_home
from retold.export.formats.registry import FORMATS, ExportOptions, ExportSession
from retold.model.session import Context, Message, Opaque, Session, Text, Thinking, ToolCall
from support import cases
from support.cases import every_case
from support.full_session import everything, session_with_text
from support.person import Person

ALL = ExportOptions(thoughts=True, notices=True)
PAGE = b"".join(FORMATS["md"].encode([everything()], ALL))
JSON = b"".join(FORMATS["json"].encode([everything()], ALL))


def written(folder: Path, form: str, telling: ExportSession, choice: ExportOptions = ALL) -> Path:
    file = folder / f"told{FORMATS[form].suffix}"
    file.write_bytes(b"".join(FORMATS[form].encode([telling], choice)))
    return file


def words(session: Session) -> list[Any]:
    """Who said and did what, in order."""
    told: list[Any] = []
    for entry in session.timeline:
        if isinstance(entry, Message):
            parts = [] if entry.prompt is None else [entry.prompt, *_words(entry, is_prompt=True)]
            parts = parts or list(_words(entry, is_prompt=False))
            told += (
                [(entry.role, entry.fate, entry.id, entry.at, entry.model, entry.own, parts)] if parts else []
            )
        elif entry.kind in ("error", "compaction") or entry.text:
            told.append((entry.kind, entry.fate, entry.text))
    return told


def _words(message: Message, *, is_prompt: bool) -> Iterator[Any]:
    for part in message.parts:
        match part:
            case Text(text) if text.strip() and not is_prompt:
                yield text
            case ToolCall():
                yield part.id, part.name, part.canonical, part.category, part.arguments, part.status
                yield (
                    part.result,
                    part.error,
                    part.full_result,
                    part.exit_code,
                    part.native_status,
                    part.at,
                    part.child,
                )
            case Thinking():
                yield part.subject, part.text
            case Context(text=str(text)):
                yield part.kind, text
            case Opaque():
                yield part.value


def assert_read_back(session: Session, folder: Path) -> None:
    (page,) = read(written(folder, "md", ExportSession(session)))
    assert words(page) == words(session)
    assert page.problems == ()
    assert (page.key, page.title, page.usage, page.first_prompt) == (
        session.key, session.title, session.usage, session.first_prompt,
    )  # fmt: skip
    assert list(read(written(folder, "json", ExportSession(session)))) == [session]


@every_case
def test_every_case_is_read_back(case: str, tmp_path: Path) -> None:
    folder = cases.copy_case(case, tmp_path)
    try:
        found = list(cases.case_sessions(case, folder))
    except NotASession:
        pytest.skip("refused")
    for session in found:
        assert_read_back(session, tmp_path)


def test_every_session_of_the_demo_is_read_back(tmp_path: Path) -> None:
    make_home(tmp_path / "demo", datetime(2026, 3, 1, 12, tzinfo=UTC))
    count = 0
    for file in Person(tmp_path / "demo/home").sources():
        try:
            found = list(read(file))
        except NotASession:
            continue
        for session in found:
            assert_read_back(session, tmp_path)
            count += 1
    assert count > 50


@pytest.mark.slow
@pytest.mark.shared
def test_every_session_of_the_corpus_is_read_back(shared: Path, tmp_path: Path) -> None:
    count = 0
    for file in sorted((shared / "corpus").rglob("*.json*")):
        try:
            found = list(read(file))
        except NotASession:
            continue
        for session in found:
            assert_read_back(session, tmp_path)
            count += 1
    assert count > 100


@pytest.mark.parametrize("form", ["md", "json"])
def test_subagents_come_behind_their_parent(form: str, tmp_path: Path) -> None:
    telling = everything()
    (child,) = telling.subagents.values()
    parent, found = read(written(tmp_path, form, telling))
    assert words(parent) == words(telling.session)
    assert words(found) == words(child.session)
    assert found.parent == parent.key


def test_the_same_page_comes_out_again(tmp_path: Path) -> None:
    session = everything().session
    (found,) = read(written(tmp_path, "md", ExportSession(session)))
    body = b"".join(FORMATS["md"].encode([ExportSession(session)], ALL)).split(b"## ", 1)[1]
    assert b"".join(FORMATS["md"].encode([ExportSession(found)], ALL)).split(b"## ", 1)[1] == body


def test_the_active_view_of_an_export_is_what_is_live(tmp_path: Path) -> None:
    for form in ("md", "json"):
        session = next(read(written(tmp_path, form, everything()), "active"))
        assert session.view == "active"
        assert {entry.fate for entry in session.timeline} == {"live"}
        assert session.counts.prompts == 2


def test_a_page_with_other_line_ends_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_bytes(PAGE.replace(b"\n", b"\r\n"))
    parent, _child = read(tmp_path / "page.md")
    assert words(parent) == words(everything().session)


def test_a_page_that_somebody_wrote_into_keeps_every_word(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_bytes(PAGE.replace(b"> Why is", b"a remark of mine\n\n> Why is"))
    parent, _child = read(tmp_path / "page.md")
    assert [told.code for told in parent.problems] == ["unexpected-shape"]
    assert "a remark of mine" in str(parent.timeline)
    assert "Why is high tide an hour late?" in str(parent.timeline)
    assert words(parent)[-1] == words(everything().session)[-1]


def test_a_part_of_a_kind_to_come_is_kept_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_bytes(PAGE.replace(b'{"prompt":', b'{"hologram":'))
    parent, _child = read(tmp_path / "page.md")
    assert {told.code for told in parent.problems} == {"unexpected-shape"}
    assert "Why is high tide an hour late?" in str(parent.timeline)


def test_a_torn_page_is_read_up_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_bytes(PAGE[: PAGE.index(b"Danke")])
    found = next(read(tmp_path / "page.md"))
    assert "truncated-tail" in [told.code for told in found.problems]
    assert words(found)[:5] == words(everything().session)[:5]


def test_a_page_whose_summary_is_damaged_still_tells_its_entries(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_bytes(PAGE.replace(b'"agent":"gemini"', b'"agent":7', 1))
    found = next(read(tmp_path / "page.md"))
    assert (found.key, found.kind) == ("retold:page", "capture")
    assert words(found) == words(everything().session)


def test_torn_json_keeps_what_is_whole(tmp_path: Path) -> None:
    (tmp_path / "told.json").write_bytes(JSON[:-40])
    (found,) = read(tmp_path / "told.json")
    assert [told.code for told in found.problems][-1] == "malformed-json"
    (tmp_path / "told.json").write_bytes(JSON[:300])
    with pytest.raises(NotASession) as refusal:
        read(tmp_path / "told.json")
    assert refusal.value.problem.code == "not-a-session"


def test_json_that_somebody_made_readable_is_the_same(tmp_path: Path) -> None:
    import json  # noqa: PLC0415 - only here

    session = session_with_text("words")
    tree = json.loads(b"".join(FORMATS["json"].encode([ExportSession(session)], ALL)))
    (tmp_path / "told.json").write_text("\ufeff" + json.dumps(tree, indent=1), encoding="utf-8")
    assert list(read(tmp_path / "told.json")) == [session]


def test_a_page_without_a_session_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text('<!-- retold {"retold":1} -->\n', encoding="utf-8")
    with pytest.raises(NotASession):
        read(tmp_path / "page.md")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_raises(data: st.DataObject, tmp_path: Path) -> None:
    whole = data.draw(st.sampled_from([PAGE, JSON]))
    start = data.draw(st.integers(60, len(whole)))
    end = data.draw(st.integers(start, min(start + 60, len(whole))))
    cut = data.draw(st.binary(max_size=8) | st.sampled_from([b"[]", b"{}", b"null", b"-1", b'"x"', b"\n"]))
    (tmp_path / "told").write_bytes(whole[:start] + cut + whole[end:])
    try:
        found = list(read(tmp_path / "told"))
    except NotASession:
        return
    assert found


def test_the_command_reads_a_page(tmp_path: Path) -> None:
    file = written(tmp_path, "md", everything())
    done = Person(tmp_path / "home").run("read", str(file))
    assert (done.code, done.err) == (0, "")
    assert "Why is high tide an hour late?" in done.out
    (tmp_path / "told.json").write_bytes(JSON)
    assert Person(tmp_path / "home").run("read", "--json", str(tmp_path / "told.json")).out.encode() == JSON

"""A digest as a page, whatever it is a digest of."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from retold.export.brief import brief_json, format_brief
from retold.insights.digest import Digest, SessionInsights, collect_insights, make_digest
from retold.model.session import Entry, Text
from retold.redaction import Redactor
from support.dialogue_sessions import TIMELINES, assistant, call, export_session, user


def told(*entries: Entry, **more: object) -> SessionInsights:
    session = msgspec.structs.replace(export_session(*entries).session, **more)
    return SessionInsights(msgspec.structs.replace(session, timeline=()), collect_insights(entries))


def many(count: int) -> Digest:
    """Sessions in each of which something of every kind is."""
    return make_digest([told(*_entries(number), key=f"gemini:session-{number}") for number in range(count)])


def _entries(number: int) -> list[Entry]:
    run = {"name": "sh", "canonical": "shell_exec", "arguments": {"command": f"make tides-{number}"}}
    edit = {"name": "edit", "canonical": "file_edit", "arguments": {"file_path": f"moon-{number}.py"}}
    return [
        user(f"Let's use table {number} for the moon."),
        assistant(call(**run, exit_code=2, result=f"error: no table {number}")),
        assistant(Text(f"Table {number} was empty."), call(**edit), call(**run)),
        assistant(Text(f"It is full now. Shall I go on with {number}?")),
    ]


@given(TIMELINES, st.integers(1, 500))
def test_any_session_can_be_told(entries: list[Entry], tokens: int) -> None:
    found = make_digest([told(*entries)])
    page = format_brief(found, "almanac", tokens)
    assert page == format_brief(found, "almanac", tokens)
    assert page.startswith("# almanac: a brief\n")
    assert json.loads(brief_json(found, "almanac"))["project"] == "almanac"
    assert isinstance(Redactor().redact_value(found), Digest)


def test_sections_share_the_room() -> None:
    found = many(40)
    for tokens in (300, 600, 1_500, 2_000):
        page = format_brief(found, "almanac", tokens)
        assert tokens * 3 < len(page.encode()) <= tokens * 4
        counts = [part.count("\n- ") - 1 for part in page.split("\n## ")[1:]]
        assert len(counts) == 5
        assert max(counts) - min(counts) <= 3, counts


def test_of_a_section_no_more_is_told_than_matters() -> None:
    page = format_brief(many(40), "almanac", 100_000)
    assert page.count("- … and 20 more\n") == 5


def test_everything_left_is_told_where_nothing_is() -> None:
    page = format_brief(make_digest([told()], left_out=7), "almanac")
    assert page.count("\n## ") == 1
    assert "7 older sessions not looked into." in page


def test_what_was_mended_together_is_a_line() -> None:
    run = {"name": "sh", "canonical": "shell_exec", "arguments": {"command": "make"}}
    failed = assistant(call(**run, exit_code=2, result="error: no zone"))
    page = format_brief(make_digest([told(user("Go"), failed, failed, assistant(call(**run)))]), "almanac")
    assert "- `make` failed 2 times: error: no zone → `make` (" in page

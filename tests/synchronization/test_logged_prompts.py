"""Prompts in a project's log join the session with the same id in the same folder, whatever the project's marker says."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from retold.agents import gemini as agent
from retold.archive.annotations import add_tag, write_title
from retold.archive.queries.lookups import load_stored_session
from retold.archive.store import Store
from retold.model.session import Session
from support.gemini_home import ROOT, GeminiHome, gemini, session_id, sha, user
from support.synced_archive import SyncedArchive, sync_archive

TALK = [user("u1", 1, "How high is the tide?"), gemini("g1", 2, "Two metres.")]
LOG = [(1, "How high is the tide?"), (2, "Where is the old harbour?")]
WINDOWS_ROOT = "C:\\Users\\Ann\\Almanac"
Lay = Callable[[GeminiHome], None]


def lay_unmarked(made: GeminiHome) -> None:
    """A folder with a slug for a name and no marker."""
    made.json("almanac", 1, 1, TALK)
    made.logs("almanac", LOG)


def lay_other_spelling(made: GeminiHome) -> None:
    """A marker in small letters; the project hash is that of the path as Windows spells it."""
    made.mark("almanac", WINDOWS_ROOT.lower())
    made.json("almanac", 1, 1, TALK, root=WINDOWS_ROOT)
    made.logs("almanac", LOG)


def lay_both_depths(made: GeminiHome) -> None:
    """The same session in the folder named by the hash and in the migrated one, which has no marker."""
    for project in (sha(ROOT), "almanac"):
        made.json(project, 1, 1, TALK)
        made.logs(project, LOG)


LAYOUTS = pytest.mark.parametrize("lay", [lay_unmarked, lay_other_spelling, lay_both_depths])


@pytest.fixture
def made(tmp_path: Path) -> GeminiHome:
    return GeminiHome(tmp_path / "ann")


def sync(made: GeminiHome) -> SyncedArchive:
    return sync_archive(made.folder.parent / "archive", {"HOME": str(made.folder)}, agents=("gemini",))


def rows(archive: SyncedArchive) -> list[tuple[str | None, str, str | None]]:
    return sorted((one.native_id, one.kind, one.first_prompt) for one in archive.sessions())


EXPECTED = [
    (session_id(1), "main", "How high is the tide?"),
    (session_id(2), "prompts-only", "Where is the old harbour?"),
]


@LAYOUTS
def test_a_session_with_its_file_is_not_listed_as_lost(made: GeminiHome, lay: Lay) -> None:
    lay(made)
    archive = sync(made)
    assert rows(archive) == EXPECTED
    assert [one.key for one in archive.summaries() if "lost-" in one.key] == [f"gemini:lost-{session_id(2)}"]


def test_the_session_names_the_log_among_its_files(made: GeminiHome) -> None:
    lay_unmarked(made)
    lost, kept = sync(made).sessions()
    with Store(str(made.folder.parent / "archive")) as record:
        asked = (
            "SELECT path FROM session_sources JOIN sessions ON sessions.id = session"
            " JOIN sources ON sources.id = source WHERE key = ? ORDER BY path"
        )
        files = [Path(path).name for (path,) in record.rows(asked, (kept.key,))]
    assert files == [f"{kept.key.removeprefix('gemini:')}.json", "logs.json"]
    assert lost.native_id == session_id(2)


def test_prompts_beside_an_empty_file_are_those_of_its_session(made: GeminiHome) -> None:
    made.lines("almanac", 1, 1, [])
    made.logs("almanac", LOG[:1])
    (session,) = sync(made).sessions()
    assert (session.kind, session.first_prompt, len(session.sources)) == (
        "prompts-only",
        "How high is the tide?",
        2,
    )


def test_the_same_id_in_another_folder_stays_lost(made: GeminiHome) -> None:
    made.json("almanac", 1, 1, TALK)
    made.logs("harbour", LOG[:1])
    assert [(kind, prompt) for _, kind, prompt in rows(sync(made))] == [
        ("main", "How high is the tide?"),
        ("prompts-only", "How high is the tide?"),
    ]


def test_a_subagents_file_claims_no_prompts(made: GeminiHome) -> None:
    made.json("almanac", 1, 1, [user("s1", 1, "Your task: tides")], kind="subagent")
    made.logs("almanac", LOG[:1])
    assert [kind for _, kind, _ in rows(sync(made))] == ["prompts-only", "subagent"]


def test_prompts_of_a_session_stay_its_own_when_its_file_is_deleted(made: GeminiHome) -> None:
    lay_unmarked(made)
    sync(made)
    (made.gemini / f"{made.name('almanac', 1, 1)}.json").unlink()
    made.logs("almanac", [*LOG, (1, "And tomorrow?")])
    assert rows(sync(made)) == EXPECTED


def test_a_prompt_typed_later_reaches_the_empty_session_of_its_folder(made: GeminiHome) -> None:
    made.lines("almanac", 1, 1, [])
    made.logs("almanac", LOG[:1])
    sync(made)
    made.logs("almanac", [LOG[0], (1, "And tomorrow?")])
    (session,) = sync(made).sessions()
    assert (session.first_prompt, session.last_prompt) == ("How high is the tide?", "And tomorrow?")


def test_a_file_that_comes_after_its_prompts_takes_them_over(made: GeminiHome) -> None:
    made.logs("almanac", LOG)
    lost = {one.native_id: one for one in sync(made).sessions()}[session_id(1)]
    keep_by_hand(made, lost)
    made.json("almanac", 1, 1, TALK)
    archive = sync(made)
    assert rows(archive) == EXPECTED
    assert_kept_by_hand(archive)


@pytest.mark.parametrize("before", [None, ROOT.upper()])
@pytest.mark.parametrize("has_file", [False, True])
def test_a_marker_that_comes_after_the_prompts_adds_no_row(
    made: GeminiHome, before: str | None, *, has_file: bool
) -> None:
    if before is not None:
        made.mark("almanac", before)
    made.logs("almanac", LOG)
    lost = {one.native_id: one for one in sync(made).sessions()}[session_id(1)]
    keep_by_hand(made, lost)
    made.mark("almanac", ROOT)
    if has_file:
        made.json("almanac", 1, 1, TALK)
    made.logs("almanac", [*LOG, (2, "And the new one?")])
    archive = sync(made)
    assert [(native_id, kind) for native_id, kind, _ in rows(archive)] == [
        (session_id(1), "main" if has_file else "prompts-only"),
        (session_id(2), "prompts-only"),
    ]
    assert_kept_by_hand(archive)
    again = sync(made)
    assert rows(again) == rows(archive)


@pytest.mark.parametrize("first", [sha(ROOT), "almanac"])
def test_a_copy_of_a_log_adds_no_row(made: GeminiHome, first: str) -> None:
    made.logs(first, LOG[:1])
    (before,) = sync(made).sessions()
    keep_by_hand(made, before)
    for project in (sha(ROOT), "almanac"):
        made.logs(project, [LOG[0], (1, "And tomorrow?")])
    archive = sync(made)
    (after,) = archive.sessions()
    assert (after.key, after.last_prompt, len(after.sources)) == (before.key, "And tomorrow?", 2)
    assert_kept_by_hand(archive)


@pytest.mark.parametrize("lay", [lay_unmarked, lay_other_spelling])
def test_an_archive_that_lists_a_session_twice_heals_when_all_is_read_again(
    made: GeminiHome, lay: Lay, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(made)
    with monkeypatch.context() as earlier:  # readers before this rule saw no folders
        earlier.setattr(agent, "log_folder", lambda _reading: None)
        twice = sync(made).sessions()
    doubled = [one for one in twice if one.native_id == session_id(1) and one.kind == "prompts-only"]
    assert len(doubled) == 1
    keep_by_hand(made, doubled[0])
    with Store(str(made.folder.parent / "archive"), can_write=True) as record:
        record.connection.execute("UPDATE dependencies SET value = 0 WHERE subject = 'revision'")
        record.connection.execute("UPDATE sources SET revision = 0")
    archive = sync(made)
    assert rows(archive) == EXPECTED
    assert_kept_by_hand(archive)
    with Store(archive.folder) as record:
        orphans = "SELECT count(*) FROM session_sources WHERE session NOT IN (SELECT id FROM sessions)"
        assert record.row(orphans) == (0,)


def test_a_record_that_holds_many_sessions_of_one_name_has_no_lost_row(made: GeminiHome) -> None:
    for number in (1, 2):
        document = {
            "sessionId": "tides",
            "projectHash": sha(ROOT),
            "messages": [user(f"u{number}", 1, "Go on")],
        }
        made.write(f"tmp/almanac/chats/session-2026-03-01T09-0{number}-tides.json", json.dumps(document))
    entry = {"sessionId": "tides", "messageId": 0, "type": "user", "message": "Go on", "timestamp": None}
    made.write("tmp/almanac/logs.json", json.dumps([entry]))
    assert [kind for _, kind, _ in rows(sync(made))] == ["main", "main"]


def keep_by_hand(made: GeminiHome, session: Session) -> None:
    """Give a session a title and a tag."""
    with Store(str(made.folder.parent / "archive"), can_write=True) as record:
        row = load_stored_session(record, session.key)
        assert row is not None
        write_title(record, row[1], "Tides")
        add_tag(record, row[1], "sea")


def assert_kept_by_hand(archive: SyncedArchive) -> None:
    kept = {one.native_id: one for one in archive.summaries()}[session_id(1)]
    assert (kept.title, kept.tags) == ("Tides", ("sea",))

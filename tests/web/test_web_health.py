"""Health: what the doctor says, and buttons that archive and restore."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote

import pytest

from retold.maintenance.doctor.survey import make_survey
from retold.web import background
from support.demo_person import DemoPerson
from support.web_server import Visit, run_web_server


@pytest.fixture
def ann(tmp_path: Path) -> DemoPerson:
    return DemoPerson(tmp_path)


@pytest.fixture
def visit(ann: DemoPerson) -> Iterator[Visit]:
    with patch.dict(os.environ, ann.env, clear=True), run_web_server(str(ann.archive)) as visit:
        visit.enter()
        yield visit


def a_key(ann: DemoPerson, agent: str) -> str:
    """Return a conversation of an agent that lies in one file of its own."""
    rows = [row for row in ann.rows().values() if row["agent"] == agent and row["kind"] == "main"]
    return next(
        str(row["key"]) for row in rows if sum(row["key"][-8:] in path.name for path in ann.sources()) == 1
    )


def plain(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def again(visit: Visit, path: str = "/health") -> str:
    assert visit.get("/health?again=1").headers["location"] == "/health"
    return plain(visit.get(path).text)


def test_it_says_what_the_doctor_says(ann: DemoPerson, visit: Visit) -> None:
    text = plain(visit.get("/health").text)
    told = {" ".join(line.split()) for line in ann.run("doctor").out.splitlines()}
    assert "* 2 sessions go at the next start, with files without conversation that" in told
    assert (
        "2 sessions go at the next start, with files without conversation that resumes left beside them"
        in text
    )
    assert "Nothing archives by itself: retold keep --install sees to that." in text
    assert text.index(".gemini") < text.index(".claude")  # the worst first
    assert "29 of 29 files are archived as they are now." in text


@pytest.mark.parametrize("agent", ["gemini", "claude", "codex"])
def test_a_lost_session_is_told_first_and_can_be_restored(ann: DemoPerson, visit: Visit, agent: str) -> None:
    key = a_key(ann, agent)
    before = ann.tree()
    (gone,) = ann.lose(key)
    assert ann.lost() == [key]
    text = again(visit)
    assert (
        "1 session is gone from your agents' homes. The archive has it: nothing that was said is lost. See and restore"
        in text
    )
    shown = visit.get("/health?show=lost").text
    way = f"/restore?key={quote(key, safe='')}"
    assert f'href="{way}"' in shown
    assert "going" not in plain(shown).partition("Going soon")[2].lower()

    foretold = visit.get(way)
    assert foretold.status == 200
    assert str(gone.parent) in foretold.text
    assert ann.run("restore", key, "--dry-run").out.removeprefix("would write ").strip() in foretold.text
    assert ann.tree().keys() == before.keys() - {str(gone)}  # nothing was written yet

    moved = visit.post("/restore", {"key": key, "token": visit.form_token()})
    assert (moved.status, moved.headers["location"]) == (303, f"{way}&done=1")
    told = visit.get(moved.headers["location"]).text
    command = ann.run("resume", key).out.strip()
    assert "It is back." in told
    assert command.replace("&", "&amp;") in told
    (added,) = ann.tree().keys() - (before.keys() - {str(gone)})
    assert Path(added).parent == gone.parent
    assert {path: data for path, data in ann.tree().items() if path != added} == {
        path: data for path, data in before.items() if path != str(gone)
    }
    assert ann.lost() == []
    assert "No session is lost." in plain(visit.get("/health?show=lost").text)
    assert "The agent has it:" in visit.get(way).text


def test_what_cannot_be_restored_is_told_in_a_sentence(ann: DemoPerson, visit: Visit) -> None:
    key = a_key(ann, "claude")
    ann.lose(key)
    root = Path(ann.rows()[key]["project"]["root"])
    root.rename(root.with_name("elsewhere"))
    before = ann.tree()
    for answered in (
        visit.get(f"/restore?key={quote(key)}"),
        visit.post("/restore", {"key": key, "token": visit.form_token()}),
    ):
        assert answered.status == 409
        assert "It cannot be written back: the folder of its project is gone" in plain(answered.text)
    assert ann.tree() == before


def test_only_sessions_of_the_archive_can_be_asked_for(ann: DemoPerson, visit: Visit) -> None:
    before = ann.tree()
    for key in ("", "gemini:", "nobody", "../../x", "%00", "<script>"):
        assert visit.get(f"/restore?key={quote(key)}").status == 404
        assert visit.post("/restore", {"key": key, "token": visit.form_token()}).status == 404
    key = a_key(ann, "gemini")
    ann.lose(key)
    gone = ann.tree()
    assert visit.post("/restore", {"key": key}).status == 403
    assert visit.get(f"/restore?key={quote(key)}&done=1").status == 200
    assert ann.tree() == gone
    assert gone.keys() < before.keys()


def test_the_button_archives_what_is_new(ann: DemoPerson, visit: Visit) -> None:
    folder = ann.folder / ".gemini" / "tmp" / "den" / "chats"
    folder.mkdir(parents=True)
    lines = (
        '{"sessionId": "abcdef12-3b2d-4f68-9a01-5d2e8c4b6f13", "projectHash": "ab", "startTime": "2026-03-01T09:00:00.000Z",'
        ' "lastUpdated": "2026-03-01T09:00:00.000Z", "kind": "main"}\n'
        '{"id": "u1", "timestamp": "2026-03-01T09:00:00.000Z", "type": "user", "content": "Do quokkas swim?"}\n'
    )
    (folder / "session-2026-03-01T09-00-abcdef12.jsonl").write_text(lines)
    text = again(visit)
    assert "1 session is about to be deleted by the agent, and not archived." in text
    assert visit.post("/health/sync", {}).status == 403
    moved = visit.post("/health/sync", {"token": visit.form_token()})
    assert (moved.status, moved.headers["location"]) == (303, "/health?synced=1")
    text = plain(visit.get("/health?synced=1").text)
    assert "Archived. 1 of 64 files were read: 1 new session." in text or "1 new session." in text
    assert "not archived" not in text
    assert "Archived." not in plain(visit.get("/health").text)
    moved = visit.post("/health/sync", {"token": visit.form_token()})
    assert "Nothing was new in" in plain(visit.get(moved.headers["location"]).text)
    assert "Do quokkas swim?" in str(ann.rows())


def test_a_sync_that_fails_says_why(ann: DemoPerson, visit: Visit) -> None:
    (ann.archive / "config.toml").write_text("homes = 3\n")
    moved = visit.post("/health/sync", {"token": visit.form_token()})
    text = plain(visit.get(moved.headers["location"]).text)
    assert "It did not work." in text
    assert "config.toml" in text


def test_a_look_is_good_for_a_moment_and_renewed_when_asked(
    ann: DemoPerson, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def look(env: dict[str, str]) -> object:
        looks.append(1)
        return make_survey(env)

    monkeypatch.setattr(background, "make_survey", look)
    for _ in range(3):
        visit.get("/health")
    assert len(looks) == 1
    ann.lose(a_key(ann, "claude"))
    assert "is gone" not in visit.get("/health").text
    assert "is gone" in again(visit)
    assert len(looks) == 2
    monkeypatch.setattr(background, "LASTS", 0.0)
    visit.get("/health")
    assert len(looks) == 3


def test_where_nothing_is_at_risk_it_says_so(tmp_path: Path) -> None:
    ann = DemoPerson(tmp_path)
    for path in ann.sources():
        path.unlink()
    with patch.dict(os.environ, ann.env, clear=True), run_web_server(str(ann.archive)) as visit:
        visit.enter()
        text = again(visit)
        assert "Nothing is at risk. What is gone is archived." in text
        assert "sessions are gone from your agents' homes." in text
        assert "No session is about to go." in plain(visit.get("/health?show=soon").text)
        assert "Everything" in plain(visit.get("/health?show=<script>").text)

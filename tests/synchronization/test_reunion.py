"""Files of one conversation whose names do not tell so are one conversation all the same: nothing that was said is hidden."""

import json
from pathlib import Path

import pytest

from retold.archive.store import Store
from retold.maintenance.watch import SessionWatch, WatchListener
from retold.model.events import UserPrompt
from retold.synchronization import run as syncing
from retold.synchronization.update import SyncOptions
from support.conversation_files import FORMS, ROOT, as_lines, at, thread, turns, uuid
from support.gemini_home import sha
from support.person import Json, Person

NUMBER = 0x5EED0001


@pytest.fixture
def ann(tmp_path: Path) -> Person:
    return Person(tmp_path / "ann")


def set_aside(person: Person, form: str, *words: str) -> Path:
    """Write a conversation down under another name than the agent gave it, as whoever makes a copy by hand."""
    path = FORMS[form].write(person.folder, NUMBER, turns(*words))
    # Codex CLI and retold look for rollouts by the form of their names.
    name = path.name.replace(thread(NUMBER), thread(9)) if form == "codex" else f"notes{path.suffix}"
    aside = path.with_name(name)
    path.rename(aside)
    return aside


def words_of(session: Json) -> set[str]:
    told = json.dumps(session["timeline"])
    return {word for word in ("heron", "otter", "vole", "stoat") if f"asked {word}" in told}


@pytest.fixture(params=sorted(FORMS))
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_copy_under_another_name_hides_nothing(ann: Person, form: str) -> None:
    set_aside(ann, form, "heron", "vole")
    FORMS[form].write(ann.folder, NUMBER, turns("heron", "otter"))
    assert ann.sync()["new_sessions"] == 1
    ((key, session),) = ann.sessions().items()
    assert words_of(session) == {"heron", "otter", "vole"}
    assert len(session["sources"]) == 2
    assert {key} == set(ann.keys("otter")) == set(ann.keys("vole"))
    ann.age()
    ann.sync()
    assert (ann.sync()["read"], ann.sessions()) == (0, {key: session})


def test_a_copy_that_says_the_same_adds_nothing_but_a_source(tmp_path: Path, form: str) -> None:
    ann, ben = Person(tmp_path / "ann"), Person(tmp_path / "ben")
    for person in (ann, ben):
        FORMS[form].write(person.folder, NUMBER, turns("heron", "otter"))
    set_aside(ann, form, "heron", "otter")
    FORMS[form].write(ann.folder, NUMBER, turns("heron", "otter"))
    without = ann.run("stats", "--by", "agent", "--json").objects
    for person in (ann, ben):
        person.sync()
    ((_, told),), ((_, alone),) = ann.sessions().items(), ben.sessions().items()
    assert (told["counts"], told["usage"]) == (alone["counts"], alone["usage"])
    assert [entry["parts"] for entry in told["timeline"]] == [entry["parts"] for entry in alone["timeline"]]
    assert (len(told["sources"]), len(alone["sources"])) == (2, 1)
    assert [row["usage"] for row in without] == [alone["usage"]]


def test_copies_of_one_name_in_many_folders_have_nothing_to_do_with_each_other(ann: Person) -> None:
    for number in range(4):
        for folder, form in (
            (f".claude/projects/-p{number}", "claude"),
            (f".gemini/tmp/p{number}/chats", "gemini-lines"),
        ):
            path = FORMS[form].write(ann.folder, NUMBER + (number << 28), turns("heron", "vole"))
            (ann.folder / folder).mkdir(parents=True)
            path.rename(ann.folder / folder / "backup.jsonl")
            FORMS[form].write(ann.folder, NUMBER + (number << 28), turns("heron", "otter"))
    ann.sync()
    with Store(str(ann.archive)) as record:
        held = dict(
            record.rows("SELECT agent || cluster, count(*) FROM sources WHERE NOT is_companion GROUP BY 1")
        )
    assert set(held.values()) == {2}
    assert len(held) == 8


def test_a_subagent_that_comes_later_finds_its_parent(ann: Person) -> None:
    set_aside(ann, "gemini-lines", "heron", "vole", "stoat")
    path = FORMS["gemini-lines"].write(ann.folder, NUMBER, turns("heron", "otter"))
    ann.sync()
    (key,) = ann.rows()
    head = {
        "sessionId": "abcd1234",
        "projectHash": sha(ROOT),
        "startTime": at(30),
        "lastUpdated": at(40),
        "kind": "subagent",
    }
    said = {"id": "abcd1234-0001-u", "timestamp": at(31), "type": "user", "content": "asked lynx"}
    below = path.parent / uuid(NUMBER) / "abcd1234.jsonl"
    below.parent.mkdir()
    below.write_text(as_lines([head, said]), encoding="utf-8")
    ann.sync()
    rows = ann.rows()
    (child,) = rows.keys() - {key}
    assert (rows[child]["parent"], rows[key]["children"]) == (key, [child])


def test_what_a_new_copy_says_is_news(ann: Person, form: str) -> None:
    FORMS[form].write(ann.folder, NUMBER, turns("heron"))
    nothing = WatchListener(lambda: None, lambda _done, _size: None, lambda _: None, lambda _: None)
    watch = SessionWatch(SyncOptions(str(ann.archive), {"HOME": str(ann.folder)}), nothing)
    watch.begin()
    kept = set(ann.sources())
    set_aside(ann, form, "heron", "vole")
    FORMS[form].write(ann.folder, NUMBER, turns("heron"))
    assert len(set(ann.sources()) - kept) == 1
    told = [step.text for news in watch.look() for step in news.steps if isinstance(step, UserPrompt)]
    assert told == ["asked vole"]


def test_what_is_forgotten_before_they_are_one_leaves_nothing_behind(
    ann: Person, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    FORMS[form].write(ann.folder, NUMBER, turns("heron", "otter"))
    ann.sync()
    (key,) = ann.rows()
    set_aside(ann, form, "heron", "vole")
    FORMS[form].write(ann.folder, NUMBER, turns("heron", "otter"))
    with monkeypatch.context() as patched:
        patched.setattr(syncing._Sync, "_read_merged", _stopped)  # noqa: SLF001 - the moment between
        assert ann.run("sync").code == 130
    assert ann.run("forget", "-y", key).code == 0
    ann.sync()
    with Store(str(ann.archive)) as record:
        assert list(record.rows("SELECT count(*) FROM originals")) == [(0,)]


def test_a_copy_that_comes_later_changes_neither_key_nor_words(ann: Person, form: str) -> None:
    path = FORMS[form].write(ann.folder, NUMBER, turns("heron", "otter"))
    ann.sync()
    ((key, _),) = ann.sessions().items()
    kept = path.read_bytes()
    aside = set_aside(ann, form, "heron", "vole")
    path.write_bytes(kept)
    assert ann.sync()["new_sessions"] == 0
    assert {key: {"heron", "otter", "vole"}} == {one: words_of(told) for one, told in ann.sessions().items()}
    # Whichever of them goes on, it is one conversation.
    set_aside(ann, form, "heron", "vole", "stoat")
    assert aside.is_file()
    path.write_bytes(kept)
    ann.sync()
    assert {key: {"heron", "otter", "vole", "stoat"}} == {
        one: words_of(told) for one, told in ann.sessions().items()
    }


def test_a_file_that_is_called_otherwise_takes_nothing_from_what_it_was(ann: Person, form: str) -> None:
    path = FORMS[form].write(ann.folder, NUMBER, turns("heron", "otter"))
    ann.sync()
    path.unlink()
    set_aside(ann, form, "heron")
    ann.sync()
    ((_, session),) = ann.sessions().items()
    assert words_of(session) == {"heron", "otter"}
    assert {source["state"] for source in session["sources"]} == {"present", "gone"}


def test_three_names_and_two_talks_are_two_conversations(ann: Person) -> None:
    for number, word in enumerate(("heron", "otter", "vole")):
        set_aside(ann, "gemini-lines", word).rename(
            ann.folder / ".gemini" / "tmp" / "almanac" / "chats" / f"{number}{word}.jsonl"
        )
    FORMS["gemini-lines"].write(ann.folder, NUMBER, turns("stoat"))
    FORMS["gemini-lines"].write(ann.folder, NUMBER + (1 << 28), turns("heron"))
    assert ann.sync()["new_sessions"] == 2
    found = {told["native_id"]: words_of(told) for told in ann.sessions().values()}
    assert found == {uuid(NUMBER): {"heron", "otter", "vole", "stoat"}, uuid(NUMBER + (1 << 28)): {"heron"}}


def test_whoever_is_stopped_before_they_are_one_mends_it_the_next_time(
    ann: Person, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    FORMS[form].write(ann.folder, NUMBER, turns("heron", "otter"))
    kept = set(ann.sources())
    set_aside(ann, form, "heron", "vole")
    FORMS[form].write(ann.folder, NUMBER, turns("heron", "otter"))
    assert len(set(ann.sources()) - kept) == 1
    with monkeypatch.context() as patched:
        patched.setattr(syncing._Sync, "_read_merged", _stopped)  # noqa: SLF001 - the moment between
        assert ann.run("sync").code == 130
    ann.age()
    ann.sync()
    ((_, session),) = ann.sessions().items()
    assert words_of(session) == {"heron", "otter", "vole"}


def _stopped(*_: object) -> None:
    raise KeyboardInterrupt


def test_all_is_one_again_when_everything_is_read_anew(
    ann: Person, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_aside(ann, form, "heron", "vole")
    FORMS[form].write(ann.folder, NUMBER, turns("heron", "otter"))
    ann.sync()
    before = ann.sessions()
    for module in ("cluster", "discovery", "plan", "run", "update"):
        monkeypatch.setattr(f"retold.synchronization.{module}.REVISION", 99)
    ann.sync()
    assert ann.sessions() == before
    for path in list(ann.sources()):
        path.unlink()
    ann.sync("--reindex")
    assert {key: words_of(told) for key, told in ann.sessions().items()} == {
        key: words_of(told) for key, told in before.items()
    }
    assert set(ann.keys("otter")) == set(ann.keys("vole")) == set(before)


def test_it_is_forgotten_as_one(ann: Person, form: str) -> None:
    set_aside(ann, form, "heron", "vole")
    FORMS[form].write(ann.folder, NUMBER, turns("heron", "otter"))
    ann.sync()
    (key,) = ann.rows()
    assert ann.run("forget", "-y", key).code == 0
    ann.sync()
    assert ann.rows() == {}
    held = b"".join(path.read_bytes() for path in ann.archive.rglob("*") if path.is_file())
    assert b"vole" not in held
    assert b"otter" not in held


def test_two_processes_find_it_out_as_one_does(ann: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, form in enumerate(sorted(FORMS)):
        set_aside(ann, form, "heron", "vole")
        FORMS[form].write(ann.folder, NUMBER, turns("heron", "otter"))
        FORMS[form].write(ann.folder, NUMBER + (number + 1 << 28), turns("stoat"))
    with monkeypatch.context() as patched:
        patched.setattr("retold.synchronization.run.pool_size", lambda _: 2)
        ann.sync()
    alone = Person(ann.folder, ann.folder / "another")
    alone.sync()
    assert alone.sessions() == ann.sessions()
    joined = {key for key, told in ann.sessions().items() if words_of(told) == {"heron", "otter", "vole"}}
    assert len(joined) == 3
    assert set(ann.keys("vole")) == set(ann.keys("otter")) == joined


def test_what_another_has_under_another_name_is_the_same_conversation(tmp_path: Path, form: str) -> None:
    ann, ben = Person(tmp_path / "ann"), Person(tmp_path / "ben")
    FORMS[form].write(ann.folder, NUMBER, turns("heron", "otter"))
    set_aside(ben, form, "heron", "vole")
    for person in (ann, ben):
        person.sync()
    (key,) = ann.rows()
    assert ann.run("import", str(ben.archive / "archive.db")).code == 0
    assert {key: {"heron", "otter", "vole"}} == {one: words_of(told) for one, told in ann.sessions().items()}
    set_aside(ben, form, "heron", "vole", "stoat")
    ben.sync()
    assert ann.run("import", str(ben.archive / "archive.db")).code == 0
    assert words_of(ann.show(key)) == {"heron", "otter", "vole", "stoat"}


def test_what_it_took_is_the_same_with_an_archive_and_without(ann: Person, form: str) -> None:
    set_aside(ann, form, "heron", "vole")
    FORMS[form].write(ann.folder, NUMBER, turns("heron", "otter"))
    without = ann.run("stats", "--by", "agent", "--json").objects
    ann.sync()
    kept = ann.run("stats", "--by", "agent", "--json").objects
    assert [(row["requests"], row["usage"]) for row in without] == [
        (row["requests"], row["usage"]) for row in kept
    ]

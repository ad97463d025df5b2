"""The archive brought up to date: nothing is read twice, and nothing that was said is ever lost."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from retold.archive.store import SMALL_CHUNK, Store
from retold.demo.home import make_home
from retold.synchronization.fingerprints import REVISION
from support.conversation_files import (
    FORMS,
    Form,
    Turn,
    as_lines,
    claude,
    claude_key,
    claude_records,
    codex,
    codex_key,
    codex_records,
    dice,
    gemini_json,
    gemini_key,
    gemini_lines,
    thread,
    turns,
    uuid,
    write_file,
)
from support.gemini_home import GeminiHome, gemini, user
from support.person import (
    Person,
    archive_contents,
    archive_tables,
    is_root,
    session_text,
    source_states,
    without_source_states,
)

HEAVY = {
    "msgspec", "dataclasses", "typing_extensions", "rich", "importlib.metadata", "multiprocessing",
}  # fmt: skip
MODULES = """
import atexit, os
atexit.register(lambda: open(os.environ["MODULES"], "w").write(" ".join(sys.modules)))
"""
NEXT_READER = """
from retold.synchronization import fingerprints
fingerprints.REVISION += 1
"""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path / "ann")


@pytest.fixture
def busy(tmp_path: Path) -> Person:
    """Somebody with weeks of work with all three agents, synced."""
    person = Person(tmp_path / "ann")
    made = make_home(person.folder / "demo", datetime(2026, 3, 1, tzinfo=UTC))
    for agent, name in (
        (".gemini", "GEMINI_CLI_HOME"),
        (".claude", "CLAUDE_CONFIG_DIR"),
        (".codex", "CODEX_HOME"),
    ):
        home = Path(made.variables[name])
        shutil.copytree(home if home.name == agent else home / agent, person.folder / agent)
    shutil.rmtree(person.folder / "demo")
    person.age()
    person.sync()
    return person


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


# Twice -------------------------------------------------------------------------------------------------------------


def test_a_second_sync_changes_nothing(busy: Person) -> None:
    before = archive_tables(busy.archive)
    again = busy.sync()
    assert (again["read"], again["new_sessions"]) == (0, 0)
    assert again["found"] == again["unchanged"] > 20
    assert archive_tables(busy.archive) == before


def test_files_that_were_just_written_are_not_read_twice(person: Person, form: Form) -> None:
    form.write(person.folder, 1, turns("tide"))
    assert person.sync()["read"] == 1
    assert person.sync()["read"] == 0
    assert person.sync()["read"] == 0


def test_a_change_that_keeps_size_and_time_is_seen_where_these_may_lie(person: Person) -> None:
    file = claude(person.folder, 1, turns("neap"))
    status = file.stat()
    person.sync()
    claude(person.folder, 1, turns("ebbs"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert person.sync()["read"] == 1
    assert person.keys("ebbs") == person.keys("neap") == [claude_key(1)]


@pytest.mark.parametrize(
    "command",
    [["sync"], ["list"], ["list", "--json"], ["search", "time"], ["sql", "SELECT * FROM sessions"]],
    ids=" ".join,
)
def test_where_nothing_is_new_nothing_heavy_is_imported(busy: Person, command: list[str]) -> None:
    busy.sync()
    told = busy.folder / "modules"
    env = {name: value for name, value in busy.env.items() if not name.startswith("COVERAGE_")}
    done = busy.spawn(*command, code=MODULES, env={**env, "MODULES": str(told)})
    assert done.code == 0
    imported = told.read_text().split()
    assert not {name for name in imported if name in HEAVY or name.startswith("retold.agents.")}


# Sources that are gone ---------------------------------------------------------------------------------------------


def delete_sources(person: Person) -> None:
    for agent in (".gemini", ".claude", ".codex"):
        shutil.rmtree(person.folder / agent)


def found_by(person: Person) -> dict[str, set[str]]:
    """What searches of many kinds find; which places are the best depends on what lies in the same file."""
    queries = [
        "time zone",
        '"time zone"',
        "error",
        "tool:Bash test",
        "is:error",
        "parse*",
        "zone OR offset",
        "read_file",
    ]
    told = {query: person.search(query, "--limit", "50") for query in queries}
    told["substring"] = person.search("--substring", "--limit", "50", "func")
    assert all(hit["snippet"] for found in told.values() for one in found for hit in one["hits"])
    return {query: {one["key"] for one in found} for query, found in told.items()}


def test_when_all_sources_are_deleted_everything_is_still_there(busy: Person) -> None:
    before, found = busy.sessions(), found_by(busy)
    assert sum(map(len, found.values())) > 20
    delete_sources(busy)
    assert busy.sync()["found"] == 0
    after = busy.sessions()
    assert without_source_states(after) == without_source_states(before)
    assert {state for session in after.values() for state in source_states(session)} == {"gone"}
    assert found_by(busy) == found


def test_the_index_is_made_anew_from_the_archive_alone(busy: Person) -> None:
    found, indexed = found_by(busy), archive_contents(busy.archive)["index"]
    delete_sources(busy)
    busy.sync("--reindex")
    assert archive_contents(busy.archive)["index"] == indexed
    assert found_by(busy) == found


def test_a_newer_reader_reads_everything_from_the_archive_alone(busy: Person) -> None:
    before, found = busy.sessions(), found_by(busy)
    delete_sources(busy)
    done = busy.spawn("sync", code=NEXT_READER)
    assert done.code == 0
    with Store(str(busy.archive)) as record:
        assert {
            revision for (revision,) in record.rows("SELECT revision FROM sources WHERE NOT is_companion")
        } == {REVISION + 1}
    assert without_source_states(busy.sessions()) == without_source_states(before)
    assert found_by(busy) == found


def test_a_source_that_comes_back_is_present_again(person: Person, form: Form) -> None:
    file = form.write(person.folder, 1, turns("tide"))
    data = file.read_bytes()
    person.sync()
    file.unlink()
    person.sync()
    assert source_states(person.show(form.key(1))) == ["gone"]
    file.write_bytes(data)
    person.sync()
    assert source_states(person.show(form.key(1))) == ["present"]


# Sources that say less ---------------------------------------------------------------------------------------------

Harm = Callable[[Path, Form], object]


def rewritten(file: Path, form: Form) -> None:
    home = next(parent.parent for parent in file.parents if parent.name in (".gemini", ".claude", ".codex"))
    form.write(home, 1, turns("ebb"))


HARMS: dict[str, tuple[Harm, str]] = {
    "vanished": (lambda file, _: file.unlink(), "gone"),
    "shrunk": (lambda file, _: os.truncate(file, file.stat().st_size // 3), "earlier"),
    "emptied": (lambda file, _: file.write_bytes(b""), "earlier"),
    "garbage": (lambda file, _: file.write_bytes(dice(1).randbytes(5000)), "earlier"),
    "rewritten with less": (rewritten, "earlier"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_source_that_says_less_takes_nothing_away(person: Person, form: Form, harm: str) -> None:
    file = form.write(person.folder, 1, turns("tide", "neap", "spring"))
    form.write(person.folder, 2, turns("other"))
    person.sync()
    before = person.show(form.key(1))
    hurt, state = HARMS[harm]
    hurt(file, form)
    for arguments in ((), ("--reindex",), ()):
        person.sync(*arguments)
        after = person.show(form.key(1))
        for word in ("tide", "neap", "spring"):
            for said in turns(word)[0]:
                assert said in session_text(after)
            assert person.keys(word) == [form.key(1)]
            (found,) = person.search(f'"given {word}"')
            assert [(hit["tool"], hit["snippet"]) for hit in found["hits"]] == [(form.tool, f"given {word}")]
        assert state in source_states(after)
        assert after["counts"]["prompts"] >= before["counts"]["prompts"]
        assert after["started_at"] == before["started_at"]
        assert person.keys("ebb") == ([form.key(1)] if harm == "rewritten with less" else [])
    assert person.keys("other") == [form.key(2)]


def test_a_source_that_shrinks_long_after_it_was_read_is_read_again(person: Person, form: Form) -> None:
    file = form.write(person.folder, 1, turns("tide", "neap", "spring"))
    person.age()
    person.sync()
    before = file.stat().st_size
    form.write(person.folder, 1, turns("ebb"))
    assert file.stat().st_size < before
    person.age(30)
    person.sync()
    assert person.keys("ebb") == [form.key(1)]
    assert source_states(person.show(form.key(1))) == ["earlier", "present"]


def test_a_source_that_is_hurt_again_and_again_takes_nothing_away(person: Person, form: Form) -> None:
    words = ["tide", "neap", "spring", "slack"]
    for place, word in enumerate(words):
        file = form.write(person.folder, 1, turns(word))
        person.sync()
        file.write_text("nothing at all" if place % 2 else "")
        person.sync()
    file.unlink()
    person.sync()
    said = session_text(person.show(form.key(1)))
    assert all(turn in said for word in words for turn in turns(word)[0])
    assert all(person.keys(word) == [form.key(1)] for word in words)


def test_a_rewrite_that_says_all_of_the_earlier_takes_its_place(person: Person) -> None:
    words: list[str] = []
    for number in range(20):
        words.append(f"word{number} {'reeds ' * 2000}")
        file = gemini_json(person.folder, 1, turns(*words))
        person.sync()
        with Store(str(person.archive)) as record:
            assert len(list(record.rows("SELECT 1 FROM originals"))) == 1
            (kept,) = next(record.rows("SELECT sum(size) FROM chunks"))
            assert kept == file.stat().st_size
    assert source_states(person.show(gemini_key(1))) == ["present"]
    assert person.keys("word0") == person.keys("word19") == [gemini_key(1)]


def test_an_answer_that_was_still_being_written_is_one_original(person: Person) -> None:
    made = GeminiHome(person.folder)
    for answer in ("The", "The tide", "The tide is high."):
        made.json("almanac", 1, 1, [user("u1", 1, "How high?"), gemini("g1", 2, answer)])
        person.sync()
    (session,) = person.sessions().values()
    assert source_states(session) == ["present"]
    assert len(session["timeline"]) == 2


def test_a_text_is_not_covered_by_another_that_begins_with_it(person: Person) -> None:
    made = GeminiHome(person.folder)
    second = [user("u2", 3, "tide tables of the year"), gemini("g2", 4, "Here they are.")]
    made.json("almanac", 1, 1, [user("u1", 1, "tide"), gemini("g1", 2, "Here"), *second])
    person.sync()
    made.json("almanac", 1, 1, second)
    person.sync()
    (session,) = person.sessions().values()
    prompts = {entry["prompt"] for entry in session["timeline"]}
    assert prompts >= {"tide", "tide tables of the year"}
    assert source_states(session) == ["earlier", "present"]


def test_what_is_written_otherwise_and_says_the_same_is_one_original(person: Person) -> None:
    file = gemini_json(person.folder, 1, turns("tide", "neap"))
    person.sync()
    file.write_text(json.dumps(json.loads(file.read_text())))
    person.sync()
    assert source_states(person.show(gemini_key(1))) == ["present"]
    with Store(str(person.archive)) as record:
        (size,) = next(record.rows("SELECT sum(size) FROM chunks"))
    assert size == file.stat().st_size


# Growth ------------------------------------------------------------------------------------------------------------


def packed_bytes(person: Person) -> dict[bytes, int]:
    """Return the chunks of the archive, each with its size."""
    if not person.archive.exists():
        return {}
    with Store(str(person.archive)) as record:
        return dict(record.rows("SELECT digest, size FROM chunks"))


@pytest.mark.parametrize("name", [name for name, form in FORMS.items() if form.is_lines])
def test_growth_stores_the_growth(person: Person, name: str) -> None:
    form, chance = FORMS[name], dice(len(name))
    said = [
        Turn(f"asked {number}", chance.randbytes(40_000).hex(), f"answered heron{number}")
        for number in range(45)
    ]
    kept, size = packed_bytes(person), 0
    for count in (36, 37, 38, 45):
        file = form.write(person.folder, 1, said[:count])
        person.sync()
        new = [length for digest, length in packed_bytes(person).items() if digest not in kept]
        assert sum(new) <= file.stat().st_size - size + SMALL_CHUNK
        kept, size = packed_bytes(person), file.stat().st_size
        assert person.keys(f"heron{count - 1}") == [form.key(1)]
        assert person.show(form.key(1))["counts"]["prompts"] == count
    assert size > 3_000_000
    assert sum(kept.values()) == size


def test_a_file_that_is_written_while_it_grows_is_read_from_where_it_was(person: Person) -> None:
    """The same session comes of a file that was synced at every line, and of one that was synced once."""
    lines = as_lines(claude_records(1, turns("tide", "neap", "spring"))).splitlines(keepends=True)
    folder = person.folder / ".claude/projects/-home-ann-dev-almanac"
    for count in range(1, len(lines) + 1):
        write_file(folder / f"{uuid(1)}.jsonl", "".join(lines[:count])[: -7 if count % 2 else None])
        person.sync()
    write_file(folder / f"{uuid(1)}.jsonl", "".join(lines))
    person.age()
    person.sync()
    other = Person(person.folder, person.folder / "other")
    other.sync()
    assert person.sessions() == other.sessions()
    once, often = archive_contents(other.archive), archive_contents(person.archive)
    assert often["index"] == once["index"]
    assert often["messages"] == once["messages"]
    assert often["requests"] == once["requests"]


def test_a_file_that_another_leads_to_stays_the_source_that_it_is(person: Person) -> None:
    """A fork of Codex CLI is compared with its parent's file, whichever of them is read first."""
    for number, words in ((1, ("tide", "neap", "spring")), (2, ("ebb",))):
        parent = codex_records(number, turns(*words))
        about = parent[0]["payload"]
        fork = {**about, "id": thread(number + 10), "forked_from_id": thread(number)}
        own = codex_records(number + 10, turns(*("own",) * len(words)))[1:]
        copied = codex_records(number, turns(words[0]))[1:]
        folder = codex(person.folder, number, turns(*words)).parent
        lines = [{**parent[0], "payload": fork}, *copied, *(own if number == 2 else ())]
        write_file(folder / f"rollout-2026-03-01T10-00-00-{thread(number + 10)}.jsonl", as_lines(lines))
    person.sync()
    for key in (codex_key(1), codex_key(2)):
        session = person.show(key)
        assert (
            session["counts"]["prompts"] == len([one for one in session["timeline"] if one.get("prompt")]) > 0
        )


def test_what_a_home_said_of_its_projects_is_not_forgotten_with_it(person: Person) -> None:
    made = GeminiHome(person.folder)
    made.json("almanac", 1, 1, [user("u1", 1, "How high is the tide?")], root="/somewhere/else")
    made.register({"/home/ann/dev/almanac": "almanac"})
    person.sync()
    (before,) = person.rows().values()
    assert (before["project"]["root"], before["project"]["evidence"]) == ("/home/ann/dev/almanac", "registry")
    shutil.rmtree(made.gemini)
    person.sync()
    person.spawn("sync", code=NEXT_READER)
    (after,) = person.rows().values()
    assert after["project"] == before["project"]


# Keys --------------------------------------------------------------------------------------------------------------


def test_a_key_stays_when_an_earlier_file_of_the_conversation_appears(person: Person) -> None:
    made = GeminiHome(person.folder)
    made.json(
        "almanac", 1, 30, [user("u2", 30, "How high is the tide now?"), gemini("g2", 31, "Three metres.")]
    )
    person.sync()
    (key,) = person.rows()
    made.json("almanac", 1, 10, [user("u1", 10, "How high is the tide?"), gemini("g1", 11, "Two metres.")])
    person.sync()
    (row,) = person.rows().values()
    assert row["key"] == key
    assert row["key"].startswith("gemini:session-2026-03-01T09-30-")
    assert row["counts"]["messages"] == 4
    assert person.keys("metres") == [key]
    assert len(person.show(key)["timeline"]) == 4
    person.sync("--reindex")
    assert [*person.rows()] == [key]


def test_keys_that_collide_are_told_apart_by_the_project(person: Person) -> None:
    made = GeminiHome(person.folder)
    for project in ("almanac", "charts"):
        made.json(
            project, 1 if project == "almanac" else 0x100000001, 1, [user("u1", 1, f"about {project}")],
            root=f"/home/ann/dev/{project}",
        )  # fmt: skip
    folder = made.gemini / "tmp"
    shutil.move(
        next((folder / "charts/chats").iterdir()),
        folder / "charts/chats" / next((folder / "almanac/chats").iterdir()).name,
    )
    person.sync()
    first, second = sorted(person.rows(), key=len)
    assert second[: len(first)] == first
    assert len(second) == len(first) + 7
    assert second[len(first)] == "~"
    assert person.rows()[second]["project"]["hash"].startswith(second[-6:])
    assert {person.show(key)["first_prompt"] for key in (first, second)} == {"about almanac", "about charts"}
    before = person.rows().keys()
    person.sync("--reindex")
    assert person.rows().keys() == before


# What stands in the way --------------------------------------------------------------------------------------------


@pytest.mark.skipif(is_root, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told_and_costs_nothing_else(person: Person) -> None:
    claude(person.folder, 1, turns("tide"))
    hidden = codex(person.folder, 2, turns("neap"))
    hidden.chmod(0)
    done = person.run("sync")
    hidden.chmod(0o600)
    assert done.code == 0
    assert str(hidden) in done.err
    assert "1 problem" in done.err
    assert person.keys("tide") == [claude_key(1)]
    person.sync()
    assert person.keys("neap") == [codex_key(2)]


def test_a_file_that_is_no_session_is_counted_once_and_read_again_when_it_is(person: Person) -> None:
    file = gemini_lines(person.folder, 1, turns("tide"))
    said = file.read_text()
    file.write_text("nothing of the kind\n")
    person.age()
    assert person.sync()["read"] == 1
    assert person.sync()["read"] == 0
    assert person.rows() == {}
    file.write_text(said)
    assert person.sync()["new_sessions"] == 1


@pytest.mark.parametrize("agent", ["gemini", "claude", "codex"])
def test_only_one_agent_may_be_read(person: Person, agent: str) -> None:
    for number, made in enumerate(FORMS.values(), 1):
        made.write(person.folder, number, turns("tide"))
    found = person.sync("--agent", agent)["found"]
    assert {row["agent"] for row in person.rows().values()} == {agent}
    assert found == len(person.rows())
    assert person.sync()["new_sessions"] == 4 - found


def test_nothing_is_written_into_the_homes_of_agents(busy: Person) -> None:
    def all_of_it() -> Iterator[tuple[str, int, int]]:
        for path in busy.sources():
            status = path.stat()
            yield str(path), status.st_size, status.st_mtime_ns

    before = list(all_of_it())
    for command in (["sync", "--reindex"], ["list"], ["search", "time"], ["show", next(iter(busy.rows()))]):
        busy.run(*command)
    assert list(all_of_it()) == before


def test_a_thread_that_is_renamed_in_the_list_of_codex_has_its_new_name(tmp_path: Path) -> None:
    """The list changes, the file of the thread does not."""
    person, form = Person(tmp_path), FORMS["codex"]
    form.write(person.folder, 7, turns("heron"))
    names = person.folder / ".codex" / "session_index.jsonl"
    for name in ("Herons", "Herons at low tide"):
        line = {
            "id": form.key(7).removeprefix("codex:"),
            "thread_name": name,
            "updated_at": "2026-03-01T10:00:00Z",
        }
        with names.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        person.sync()
        assert person.rows()[form.key(7)]["summary"] == name


def test_a_file_that_comes_back_untouched_is_there_again(person: Person) -> None:
    folder = FORMS["claude"].write(person.folder, 1, turns("heron")).parent
    person.age()
    person.sync()
    away = folder.rename(person.folder / "away")
    person.sync()
    assert source_states(person.show(claude_key(1))) == ["gone"]
    away.rename(folder)
    person.sync()
    assert source_states(person.show(claude_key(1))) == ["present"]


def test_files_of_a_home_that_a_sync_does_not_look_at_are_not_gone(tmp_path: Path) -> None:
    person, form, other = Person(tmp_path / "ann"), FORMS["claude"], tmp_path / "laptop"
    form.write(person.folder, 1, turns("heron"))
    form.write(other, 2, turns("otter"))
    person.sync("--home", str(other))
    for _ in range(2):
        assert [source["state"] for row in person.rows().values() for source in row["sources"]] == [
            "present",
            "present",
        ]
        person.sync()

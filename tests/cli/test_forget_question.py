"""`retold forget` lists what it deletes, asks first, and takes a project by its exact name."""

import sys
from pathlib import Path

import pytest

from support.conversation_files import as_lines, claude, claude_key, claude_records, turns, write_file
from support.gemini_home import GeminiHome, user
from support.person import Person, archive_tables


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path / "ann")


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Put a terminal on stdin that types an answer."""

    class Terminal:
        isatty = staticmethod(lambda: True)
        readline = staticmethod(lambda: text)

    monkeypatch.setattr(sys, "stdin", Terminal)


def project(person: Person, number: int, root: str) -> None:
    """Write a session of a project."""
    name = root.rpartition("/")[2]
    made = GeminiHome(person.folder)
    made.mark(name, root)
    made.json(name, number, 1, [user("u1", 1, f"about {name}")], root=root)


def roots(person: Person) -> list[str]:
    return sorted(row["project"]["root"] for row in person.rows().values())


def test_without_a_terminal_nothing_changes(person: Person) -> None:
    claude(person.folder, 1, turns("tide"))
    person.age()
    person.sync()
    before = archive_tables(person.archive)
    done = person.run("forget", claude_key(1))
    assert done.code == 1
    assert "nothing was changed: there is no terminal to ask on" in done.err
    assert "--yes" in done.err
    assert archive_tables(person.archive) == before


@pytest.mark.parametrize(("text", "code"), [("y\n", 0), ("YES\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_the_answer_on_a_terminal_decides(
    person: Person, monkeypatch: pytest.MonkeyPatch, text: str, code: int
) -> None:
    claude(person.folder, 1, turns("tide"))
    person.sync()
    answer(monkeypatch, text)
    done = person.run("forget", claude_key(1))
    assert "Delete it from the archive for good? [y/N] " in done.err
    assert done.code == code
    assert bool(person.rows()) == bool(code)
    assert ("retold: nothing was changed" in done.err) == bool(code)


def test_each_session_is_listed_before_the_question(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    file = claude(person.folder, 1, turns("tide tables"))
    lines = [{**one, "isSidechain": True, "agentId": "a1"} for one in claude_records(1, turns("sounding"))]
    write_file(file.with_suffix("") / "subagents/agent-a1.jsonl", as_lines(lines))
    claude(person.folder, 2, turns("lighthouse"))
    person.sync()
    answer(monkeypatch, "n\n")
    done = person.run("forget", "--project", "almanac")
    titles = {row["key"]: row["title"] for row in person.rows().values()}
    listed, _, asked = done.err.partition("Delete these 3 from the archive")
    assert asked
    for number in (1, 2):
        (line,) = [line for line in listed.splitlines() if f"would forget {claude_key(number)} " in line]
        assert titles[claude_key(number)] in line
        assert " almanac " in line
        assert person.rows()[claude_key(number)]["ended_at"][:7] in line
    assert "3 sessions in all, 1 of them subagent" in listed


def test_an_exact_project_name_wins_over_parts_of_names(person: Person) -> None:
    for number, name in enumerate(("app", "happy", "webapp"), 1):
        project(person, number, f"/home/ann/dev/{name}")
    person.sync()
    assert person.run("forget", "-y", "--project", "App").code == 0
    assert roots(person) == ["/home/ann/dev/happy", "/home/ann/dev/webapp"]


def test_an_exact_name_wins_in_another_form_of_unicode(person: Person) -> None:
    for number, name in enumerate(("caf\u00e9", "caf\u00e9s"), 1):
        project(person, number, f"/home/ann/dev/{name}")
    person.sync()
    assert person.run("forget", "-y", "--project", "Cafe\u0301").code == 0
    assert roots(person) == ["/home/ann/dev/caf\u00e9s"]


@pytest.mark.parametrize("option", ["--yes", "--dry-run"])
def test_several_projects_are_refused_with_their_names(person: Person, option: str) -> None:
    for number, name in enumerate(("happy", "webapp"), 1):
        project(person, number, f"/home/ann/dev/{name}")
    person.sync()
    done = person.run("forget", option, "--project", "app")
    assert done.code == 2
    assert "app may mean any of 2 projects" in done.err
    assert (
        "  /home/ann/dev/happy  (1 session in all)\n  /home/ann/dev/webapp  (1 session in all)\n" in done.err
    )
    assert len(roots(person)) == 2


def test_two_projects_of_one_name_are_told_apart_by_their_paths(person: Person) -> None:
    for number, folder in enumerate(("one", "two"), 1):
        root = f"/home/ann/{folder}/app"
        made = GeminiHome(person.folder)
        made.mark(f"app-{number}", root)
        made.json(f"app-{number}", number, 1, [user("u1", 1, "about it")], root=root)
    person.sync()
    done = person.run("forget", "-y", "--project", "app")
    assert (done.code, "/home/ann/one/app" in done.err, len(roots(person))) == (2, True, 2)
    assert person.run("forget", "-y", "--project", "/home/ann/one/app").code == 0
    assert roots(person) == ["/home/ann/two/app"]


def test_a_part_of_a_name_that_only_one_project_has_is_enough(person: Person) -> None:
    project(person, 1, "/home/ann/dev/webapp")
    project(person, 2, "/home/ann/dev/charts")
    person.sync()
    assert person.run("forget", "-y", "--project", "WEBA").code == 0
    assert roots(person) == ["/home/ann/dev/charts"]


@pytest.mark.parametrize("named", ["", " ", "--project=", "--project= "])
def test_a_blank_name_names_nothing(person: Person, named: str) -> None:
    """As a shell passes it for a variable that is not set."""
    project(person, 1, "/home/ann/dev/two words")
    person.sync()
    done = person.run("forget", "-y", named)
    assert (done.code, "name either a SESSION or a --project" in done.err) == (2, True)
    assert len(roots(person)) == 1

"""`connect` and `keep` both let agents call retold: never twice, and neither takes away what is the other's."""

from pathlib import Path

import pytest

from support.installed_script import InstalledPerson, file_tree

HOOKS = {
    "gemini": ".gemini/extensions/retold/hooks/hooks.json",
    "claude": ".claude/skills/retold/hooks/hooks.json",
}
ROWS = {"claude": 0, "gemini": 2}


@pytest.fixture
def ann(tmp_path: Path) -> InstalledPerson:
    person = InstalledPerson(tmp_path / "ann")
    for agent in HOOKS:
        (person.folder / f".{agent}").mkdir()
    return person


def own(person: InstalledPerson, agent: str) -> Path:
    return person.folder / f".{agent}" / "settings.json"


def calls(person: InstalledPerson, agent: str) -> tuple[bool, bool]:
    """Return whether the settings call retold, and whether what `connect` has put there does."""
    places = (own(person, agent), person.folder / HOOKS[agent])
    first, second = (path.exists() and b"keep --hook" in path.read_bytes() for path in places)
    return first, second


def state(person: InstalledPerson, agent: str) -> str:
    return person.run("keep").out.splitlines()[ROWS[agent]].split("(")[0].removeprefix(agent).strip()


def homes(person: InstalledPerson) -> dict[str, object]:
    return {path: held for path, held in file_tree(person.folder).items() if not path.startswith("retold")}


@pytest.mark.parametrize("agent", HOOKS)
def test_where_keep_is_on_no_second_hook_is_written(ann: InstalledPerson, agent: str) -> None:
    ann.run("keep", "--install")
    kept = homes(ann)
    ann.run("connect", agent, "--yes")
    assert calls(ann, agent) == (True, False)
    assert state(ann, agent) == "hook: yes"
    ann.run("connect", agent, "--remove", "--yes")
    assert homes(ann) == kept


@pytest.mark.parametrize("agent", HOOKS)
def test_where_it_is_connected_keep_adds_none(ann: InstalledPerson, agent: str) -> None:
    ann.run("connect", agent, "--yes")
    assert state(ann, agent) == "hook: yes, by what `retold connect` has set up"
    connected = calls(ann, agent)
    ann.run("keep", "--install")
    assert calls(ann, agent) == connected == (False, True)
    other = next(name for name in HOOKS if name != agent)
    assert calls(ann, other) == (True, False)
    ann.run("keep", "--remove")
    assert calls(ann, agent) == (False, True)
    assert calls(ann, other) == (False, False)


@pytest.mark.parametrize("agent", HOOKS)
def test_when_keep_is_removed_connecting_again_brings_the_hook_back(ann: InstalledPerson, agent: str) -> None:
    before = homes(ann)
    ann.run("keep", "--install")
    ann.run("connect", agent, "--yes")
    ann.run("keep", "--remove")
    assert calls(ann, agent) == (False, False)
    assert state(ann, agent) == "hook: no"
    ann.run("connect", agent, "--yes")
    assert calls(ann, agent) == (False, True)
    ann.run("connect", agent, "--remove", "--yes")
    assert homes(ann) == before


@pytest.mark.parametrize("agent", HOOKS)
def test_when_it_is_disconnected_it_is_told_and_keep_can_take_over(ann: InstalledPerson, agent: str) -> None:
    ann.run("connect", agent, "--yes")
    done = ann.run("connect", agent, "--remove", "--yes")
    assert f"{agent} no longer has its sessions archived at their end: `retold keep --install`" in done.err
    assert state(ann, agent) == "hook: no"
    ann.run("keep", "--install")
    assert calls(ann, agent) == (True, False)


@pytest.mark.parametrize("agent", HOOKS)
def test_a_hook_that_came_to_stand_twice_is_once_again(ann: InstalledPerson, agent: str) -> None:
    ann.run("connect", agent, "--yes")
    (ann.folder / HOOKS[agent]).rename(ann.folder / "hooks.json")
    ann.run("keep", "--install")
    (ann.folder / "hooks.json").rename(ann.folder / HOOKS[agent])
    assert calls(ann, agent) == (True, True)
    done = ann.run("connect", agent, "--yes")
    assert f"retold: removed {ann.folder / HOOKS[agent]}" in done.err
    assert calls(ann, agent) == (True, False)


@pytest.mark.parametrize("agent", HOOKS)
def test_the_hook_of_another_retold_is_told(ann: InstalledPerson, agent: str) -> None:
    ann.call("connect", agent, "--yes")
    assert state(ann, agent) == "hook: yes, but it calls another retold: `retold connect` renews it"
    ann.run("connect", agent, "--yes")
    assert state(ann, agent) == "hook: yes, by what `retold connect` has set up"


@pytest.mark.parametrize("first", ["keep", "connect"])
def test_settings_that_both_have_changed_are_to_the_byte_as_before(ann: InstalledPerson, first: str) -> None:
    own(ann, "claude").write_text('{\n  "model": "x" // mine\n}\n', encoding="utf-8")
    before = homes(ann)
    calls_of = {"keep": ("keep", "--install"), "connect": ("connect", "claude", "--yes")}
    ends_of = {"keep": ("keep", "--remove"), "connect": ("connect", "claude", "--remove", "--yes")}
    order = [first, *(name for name in calls_of if name != first)]
    for ending in (order, order[::-1]):
        for name in order:
            ann.run(*calls_of[name])
        for name in ending:
            ann.run(*ends_of[name])
        assert homes(ann) == before

"""The originals in the archive: every content that a file had when it was synced, byte for byte."""

import json
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from retold.agents.registry import AGENTS
from retold.archive.store import Store, cut_by_content
from support.conversation_files import (
    FORMS,
    ROOT,
    Turn,
    as_lines,
    dice,
    gemini_json,
    gemini_key,
    turns,
    write_file,
)
from support.gemini_home import GeminiHome, gemini, sha, user
from support.person import Person, session_text, source_states

pytestmark = pytest.mark.slow


def originals(person: Person) -> dict[bytes, bool]:
    """Return the content of every original, and whether it is the latest of its file."""
    with Store(str(person.archive)) as record:
        rows = list(record.rows("SELECT id, is_latest FROM originals"))
        return {record.originals.read(number): bool(is_latest) for number, is_latest in rows}


def long_talk(*prompts: str) -> list[Turn]:
    return [Turn(prompt, f"{prompt} " * 60_000, f"answer to {prompt}") for prompt in prompts]


@pytest.mark.parametrize("form", ["claude", "codex", "gemini-lines"])
def test_a_file_that_was_edited_and_grew_is_no_mixture_of_both(tmp_path: Path, form: str) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS[form].write(person.folder, 1, long_talk("heron", "otter", "bittern", "plover"))
    before = file.read_bytes()
    person.sync()
    grown = FORMS[form].write(person.folder, 1, long_talk("heron", "otter", "bittern", "plover", "dunlin"))
    after = grown.read_bytes()
    assert after.startswith(before[: len(before) // 2])
    for place in range(30_000, len(before), 9_973):  # the same length: at any place, sampled or not
        found = after.find(b"otter otter", place)
        if found >= 0:
            break
    edited = after[:found] + b"otter OTTER" + after[found + 11 :]
    grown.write_bytes(edited)
    person.sync()
    assert originals(person) == {before: False, edited: True}


def test_a_file_that_only_grew_is_kept_once(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    FORMS["claude"].write(person.folder, 1, long_talk("heron", "otter"))
    person.sync()
    file = FORMS["claude"].write(person.folder, 1, long_talk("heron", "otter", "dunlin"))
    person.sync()
    assert originals(person) == {file.read_bytes(): True}


def test_a_rewrite_without_a_picture_and_without_tokens_takes_neither_away(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    made = GeminiHome(person.folder)
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGVyb24="}}
    asked = {**user("u1", 1, ""), "content": [{"text": "What is this?"}, picture]}
    answered = gemini("g1", 2, "A heron.")
    before = made.json("almanac", 1, 1, [asked, answered]).read_bytes()
    person.sync()
    (earlier,) = person.sessions().values()
    poorer = {name: value for name, value in answered.items() if name != "tokens"}
    after = made.json(
        "almanac", 1, 1, [{**asked, "content": [{"text": "What is this?"}]}, poorer]
    ).read_bytes()
    for arguments in ((), ("--reindex",)):
        person.sync(*arguments)
        assert originals(person) == {before: False, after: True}
        (session,) = person.sessions().values()
        assert session["timeline"] == earlier["timeline"]
        assert session["usage"] == earlier["usage"]
        assert not session["usage"]["estimated"]
        assert source_states(session) == ["earlier", "present"]


def without_tokens(value: Any) -> Any:
    """Return a record without what it says of tokens."""
    if isinstance(value, list):
        return [without_tokens(item) for item in value if not _counts_tokens(item)]
    if isinstance(value, dict):
        return {name: without_tokens(item) for name, item in value.items() if name not in ("tokens", "usage")}
    return value


def _counts_tokens(record: Any) -> bool:
    payload = record.get("payload") if isinstance(record, dict) else None
    return isinstance(payload, dict) and payload.get("type") == "token_count"


@pytest.mark.parametrize("form", FORMS)
def test_tokens_count_that_a_later_version_of_the_file_no_longer_tells(tmp_path: Path, form: str) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS[form].write(person.folder, 1, turns("heron", "otter"))
    person.sync()
    (earlier,) = person.sessions().values()
    assert earlier["usage"]["total"]
    lines = [json.loads(file.read_text())] if form == "gemini-json" else records_in(file)
    write_file(file, as_lines(without_tokens(lines)))
    for arguments in ((), ("--reindex",)):
        person.sync(*arguments)
        (session,) = person.sessions().values()
        assert session["usage"] == earlier["usage"]
        assert session["counts"] == earlier["counts"]


@pytest.mark.parametrize("form", ["gemini-json", "gemini-lines"])
@pytest.mark.parametrize("field", ["resultDisplay", "description", "displayName", "mood"])
def test_what_a_call_showed_stays_when_a_later_version_of_the_file_leaves_it_out(
    tmp_path: Path, field: str, form: str
) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS[form].write(person.folder, 1, turns("heron", "otter"))
    lines = [json.loads(file.read_text())] if form == "gemini-json" else records_in(file)
    messages = lines[0]["messages"] if form == "gemini-json" else lines
    (call,) = next(message["toolCalls"] for message in messages if "toolCalls" in message)
    call[field] = "bittern and dunlin"
    write_file(file, as_lines(lines))
    person.sync()
    (earlier,) = person.sessions().values()
    assert "bittern and dunlin" in session_text(earlier)
    del call[field]
    write_file(file, as_lines(lines))
    for arguments in ((), ("--reindex",)):
        person.sync(*arguments)
        (session,) = person.sessions().values()
        assert session["timeline"] == earlier["timeline"]


LEFT_OUT: dict[str, tuple[str, Callable[[Any], object]]] = {
    "the parent of a line": ("claude", lambda lines: lines[2].update(parentUuid=lines[0]["uuid"])),
    "the branch of one line": ("claude", lambda lines: lines[2].pop("gitBranch")),
    "what a tool gave to the agent alone": ("claude", lambda lines: lines[2].pop("toolUseResult")),
    "a field that nobody knows": ("gemini-lines", lambda lines: lines[2].pop("mood")),
    "a field of an event": ("codex", lambda lines: lines[2]["payload"].pop("mood")),
    "a number": ("gemini-json", lambda lines: lines[0]["messages"][1].update(mood=2)),
    "a number that other lines have": (
        "codex",
        lambda lines: lines[7]["payload"]["info"]["last_token_usage"].update(input_tokens=101),
    ),
    "a time of one line": ("codex", lambda lines: lines[7].pop("timestamp")),
    "the name in a result": (
        "gemini-lines",
        lambda lines: lines[2]["toolCalls"][0]["result"][0]["functionResponse"].pop("name"),
    ),
    "the order of messages": ("gemini-json", lambda lines: lines[0]["messages"].reverse()),
}
"""Changes of a file of which the session shows nothing: the form of the file, and what is done to its records."""


@pytest.mark.parametrize("change", LEFT_OUT)
def test_a_rewrite_without_a_value_that_no_session_shows_takes_it_not_away(
    tmp_path: Path, change: str
) -> None:
    form, leave_out = LEFT_OUT[change]
    person = Person(tmp_path / "ann")
    file = FORMS[form].write(person.folder, 1, turns("heron", "otter"))
    lines = [json.loads(file.read_text())] if form == "gemini-json" else records_in(file)
    if form == "claude":
        for line in lines:
            line["gitBranch"] = "main"
        lines[2]["toolUseResult"] = {"stdout": "bittern", "stderr": ""}
    elif form == "codex":
        lines[2]["payload"]["mood"] = "calm"
    elif form == "gemini-json":
        lines[0]["messages"][1]["mood"] = 1
    else:
        lines[2]["mood"] = "calm"
    before = write_file(file, as_lines(lines)).read_bytes()
    person.sync()
    leave_out(lines)
    after = write_file(file, as_lines(lines)).read_bytes()
    for arguments in ((), ("--reindex",)):
        person.sync(*arguments)
        assert originals(person) == {before: False, after: True}


def records_in(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_rewrite_of_the_same_size_and_time_is_seen(tmp_path: Path, form: str, *, is_replaced: bool) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS[form].write(person.folder, 1, long_talk("heron", "otter"))
    person.age()
    person.sync()
    before, status = file.read_bytes(), file.stat()
    after = before.replace(b"answer to heron", b"answer to egret")  # far from the end
    new = file.with_suffix(".new") if is_replaced else file
    new.write_bytes(after)
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.replace(file)
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    assert person.sync()["read"] == 1
    assert originals(person) == {before: False, after: True}
    assert person.keys("egret") == [FORMS[form].key(1)]
    assert person.sync()["read"] == 0


def test_a_change_of_permissions_costs_one_read_and_keeps_nothing_twice(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS["claude"].write(person.folder, 1, long_talk("heron"))
    person.age()
    person.sync()
    file.chmod(0o600 if file.stat().st_mode & 0o077 else 0o640)
    assert [person.sync()["read"] for _ in range(2)] == [1, 0]
    assert originals(person) == {file.read_bytes(): True}


def damaged_line(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:3], b"{heron without a key}\n", *lines[3:]])


def damaged_document(data: bytes) -> bytes:
    return data.replace(b'"answered otter"', b'"answered otter" damage', 1)


@pytest.mark.parametrize(
    ("form", "damaged"),
    [
        ("claude", damaged_line),
        ("codex", damaged_line),
        ("gemini-lines", damaged_line),
        ("gemini-json", damaged_document),
    ],
)
def test_an_earlier_version_with_bytes_that_nobody_could_read_stays(
    tmp_path: Path, form: str, damaged: Callable[[bytes], bytes]
) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS[form].write(person.folder, 1, turns("heron", "otter"))
    whole = file.read_bytes()
    file.write_bytes(damaged(whole))
    assert file.read_bytes() != whole
    person.sync()
    file.write_bytes(whole)
    for arguments in ((), ("--reindex",)):
        person.sync(*arguments)
        assert originals(person) == {damaged(whole): False, whole: True}


@pytest.mark.parametrize("form", ["gemini-json", "claude"])
def test_a_file_that_was_read_while_it_was_written_anew_is_not_kept(tmp_path: Path, form: str) -> None:
    person = Person(tmp_path / "ann")
    file = FORMS[form].write(person.folder, 1, turns("heron", "otter"))
    person.sync()
    whole = FORMS[form].write(person.folder, 1, turns("heron", "otter", "plover")).read_bytes()
    file.write_bytes(whole[: whole.rindex(b"answered plover")])
    person.sync()
    file.write_bytes(whole)
    person.sync()
    assert originals(person) == {whole: True}


def test_a_file_that_names_another_project_takes_no_earlier_version_away(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    file = gemini_json(person.folder, 1, turns("heron"))
    before = file.read_bytes()
    person.sync()
    after = before.replace(sha(ROOT).encode(), sha("/home/ann/dev/other").encode())
    file.write_bytes(after)
    person.sync()
    assert originals(person) == {before: False, after: True}


# Many versions of a file ---------------------------------------------------------------------------------------------


@pytest.fixture
def joins(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count how often conversations of Gemini CLI are joined; each call returns the number since the last."""
    gemini_cli, count = AGENTS["gemini"], list[None]()
    whole = gemini_cli.join

    def counting(*arguments: Any, **named: Any) -> Any:
        count.append(None)
        return whole(*arguments, **named)

    def taken() -> int:
        number = len(count)
        count.clear()
        return number

    monkeypatch.setattr(gemini_cli, "join", counting)
    return taken


def kept_sizes(person: Person) -> tuple[int, int]:
    """Return the number of originals and the bytes of all chunks."""
    with Store(str(person.archive)) as record:
        (count,) = next(record.rows("SELECT count(*) FROM originals"))
        (size,) = next(record.rows("SELECT sum(size) FROM chunks"))
    return count, size


def test_versions_that_differ_in_one_place_cost_little_and_are_compared_once(
    tmp_path: Path, joins: Callable[[], int]
) -> None:
    person, chance = Person(tmp_path / "ann"), dice(7)
    said = [Turn(f"asked {number}", chance.randbytes(5000).hex(), "answered") for number in range(140)]
    contents, sizes, counts = [], [], []
    for version in range(12):
        place = chance.randrange(len(said))
        said[place] = said[place]._replace(answer=f"otter{version}")
        contents.append(gemini_json(person.folder, 1, said).read_bytes())
        joins()
        person.sync()
        counts.append(joins())
        sizes.append(kept_sizes(person))
    assert originals(person) == {data: data == contents[-1] for data in contents}
    assert [count for count, _ in sizes] == list(range(1, 13))
    # The second version is the first one that is cut by its content.
    growth = [later - earlier for (_, earlier), (_, later) in pairwise(sizes[1:])]
    assert max(growth) < len(contents[0]) // 4
    assert sum(growth) < len(contents[0])
    assert counts[2:] == [counts[2]] * 10
    assert all(person.keys(f"otter{version}") == [gemini_key(1)] for version in range(12))


def test_a_file_that_got_better_needs_none_of_its_versions(tmp_path: Path) -> None:
    person = Person(tmp_path / "ann")
    for words in (("tide", "neap"), ("tide",), ("tide", "neap", "spring")):
        file = gemini_json(person.folder, 1, turns(*words))
        person.sync()
    assert originals(person) == {file.read_bytes(): True}


@pytest.mark.parametrize("place", [0, 1, 300_000, 700_000])
def test_an_edit_changes_the_pieces_around_it_alone(place: int) -> None:
    data = b"".join(
        b'{"text": "%s"},\n' % dice(number).randbytes(300).hex().encode() for number in range(1200)
    )
    edited = data[:place] + b"an edit of another length" + data[place + 3 :]
    before, after = list(cut_by_content(data, 1 << 20)), list(cut_by_content(edited, 1 << 20))
    assert (b"".join(before), b"".join(after)) == (data, edited)
    assert max(map(len, before)) <= 1 << 20
    assert len(before) > 6
    assert len(set(after) - set(before)) <= 2


def test_what_has_no_place_to_cut_is_cut_at_the_largest_size() -> None:
    assert [len(piece) for piece in cut_by_content(bytes(2_500), 1_000)] == [1_000, 1_000, 500]
    assert list(cut_by_content(b"", 1_000)) == []

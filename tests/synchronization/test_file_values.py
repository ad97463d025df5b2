"""Whether a file holds every value of its earlier version, record by record."""

import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retold.archive.store import Store
from retold.sessions.archive_disk import MemoryFile
from retold.synchronization import cluster, snapshot
from retold.synchronization.containment import contains_values
from support.conversation_files import FORMS, as_lines, codex_records, gemini_head, gemini_records, turns
from support.person import Person

Place = tuple[str | int, ...]
VOLATILE = ("lastUpdated", "messageCount", "userMessageCount")


def holds(later: bytes, earlier: bytes) -> bool:
    return contains_values(MemoryFile(later, 0), MemoryFile(earlier, 0))


def encoded(*records: Any) -> bytes:
    return as_lines(records).encode()


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of everything in a value."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*place, key)
        if isinstance(item, dict | list):
            yield from places(item, (*place, key))


def at_place(value: Any, place: Place) -> Any:
    for key in place:
        value = value[key]
    return value


def changes(records: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield records with one thing missing, changed or behind its neighbour, for each thing in them."""
    for place in places(records):
        found = at_place(records, place)
        if found in (None, "", [], {}) or place[-1] in VOLATILE:
            continue
        for kind in ("gone", "another", "behind"):
            made = copy.deepcopy(records)
            holder, key = at_place(made, place[:-1]), place[-1]
            match kind, found:
                case "gone", _:
                    del holder[key]
                case "another", bool():
                    holder[key] = not found
                case "another", int():
                    holder[key] = found + 1
                case "another", str():
                    holder[key] = found[:-1]
                case "behind", _ if isinstance(key, int) and key + 1 < len(holder):
                    holder[key : key + 2] = holder[key : key + 2][::-1]
            if made != records:
                yield f"{place} is {kind}", made


@pytest.mark.parametrize("form", FORMS)
def test_every_value_of_every_record_is_compared(tmp_path: Path, form: str) -> None:
    file = FORMS[form].write(tmp_path, 1, turns("heron", "otter"))
    data = file.read_bytes()
    if FORMS[form].is_lines:
        records = [json.loads(line) for line in data.splitlines()]
        found = [name for name, made in changes(records) if holds(encoded(*made), data)]
    else:
        document = json.loads(data)
        made_of = ((name, made[0]) for name, made in changes([document]) if made)
        found = [name for name, made in made_of if holds(json.dumps(made, indent=2).encode(), data)]
    assert found == []
    assert holds(data, data)


def test_two_equal_lines_are_two() -> None:
    line = codex_records(1, turns("heron"))[-1]
    assert holds(encoded(line, line), encoded(line, line))
    assert not holds(encoded(line), encoded(line, line))


def test_a_conversation_may_go_on() -> None:
    said = turns("heron", "otter", "plover")
    earlier = {**gemini_head(1, said[:2]), "messages": gemini_records(1, said[:2])}
    later = {**gemini_head(1, said), "messages": gemini_records(1, said), "summary": "birds"}
    later["messages"][1]["content"] += ", and what it eats"
    earlier["messages"][3]["toolCalls"][0] |= {"status": "executing", "result": []}
    for indent in (None, 2):
        first, second = (json.dumps(value, indent=indent).encode() for value in (earlier, later))
        assert holds(second, first)
        assert not holds(first, second)
    done = copy.deepcopy(later)
    done["messages"][3]["toolCalls"][0]["status"] = "error"
    assert not holds(json.dumps(done).encode(), json.dumps(later).encode())


def test_one_message_may_hold_several_versions_of_it() -> None:
    first, last = ({"id": "a", "type": "gemini", "content": text} for text in ("At", "At six."))
    other = {"id": "b", "type": "user", "content": "At"}
    assert holds(encoded(last, other), encoded(first, last, other))
    assert not holds(encoded(other), encoded(first))


def test_what_a_change_says_of_the_session_is_compared_but_its_time() -> None:
    earlier, later = (
        {"$set": {"lastUpdated": f"2026-03-0{day}", "directories": ["/tide"]}} for day in (1, 2)
    )
    assert holds(encoded(later), encoded(earlier))
    later["$set"].pop("directories")
    assert not holds(encoded(later), encoded(earlier))


def test_a_line_that_is_no_json_must_be_there() -> None:
    line = {"type": "user", "content": "heron"}
    whole = encoded(line)
    assert holds(whole, b"\0" * 9000 + whole[:-9])
    assert holds(b"tide\n" + whole, b"\xef\xbb\xbf" + whole)
    assert not holds(whole, b"{otter\n" + whole)
    assert not holds(b"# Heron\nsaid\n", b"# Heron\nsaid\nmore\n")
    assert holds(b"# Heron\nsaid\nmore\n", b"# Heron\nsaid\n")


def test_what_is_too_deep_to_compare_is_kept() -> None:
    deep = sys.getrecursionlimit() // 2
    first, second = ((f'{{"v": {"[" * deep}{number}{"]" * deep}}}').encode() for number in (1, 2))
    assert holds(first, first)
    assert not holds(second, first)


@pytest.mark.parametrize("form", ["gemini-json", "codex"])
def test_files_that_are_not_held_in_memory_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    for module in (cluster, snapshot):
        monkeypatch.setattr(module, "LARGEST", 64)
    person = Person(tmp_path / "ann")
    file = FORMS[form].write(person.folder, 1, turns("heron", "otter"))
    before = file.read_text()
    person.sync()
    tokens = '"input": 100' if form == "gemini-json" else '"last_token_usage":{"input_tokens":100'
    assert tokens in before
    file.write_text(before.replace(tokens, tokens.replace("100", "101"), 1))
    person.sync()
    with Store(str(person.archive)) as record:
        kept = [record.originals.read(number) for (number,) in record.rows("SELECT id FROM originals")]
    assert sorted(kept) == sorted([before.encode(), file.read_bytes()])

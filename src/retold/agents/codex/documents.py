"""Sessions of the first Codex, in TypeScript (April to August 2025): one JSON document a file."""

from collections.abc import Sequence
from typing import Any

from retold.agents.codex.raw import Record
from retold.agents.codex.replay import fold_bare, meet_session
from retold.agents.codex.rollouts import new_state, rollout
from retold.agents.codex.state import State
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem, problem
from retold.reading.disk import FileBytes, read_bytes, remove_nuls
from retold.reading.json_decode import Decoded, Undecodable, as_json_text, decode, salvage


def read_document(source: Source) -> Sequence[Reading] | Problem:
    """Read `{"session": {...}, "items": [...]}`."""
    file = read_bytes(source.path, source.disk)
    if isinstance(file, Problem):
        return file
    found = _object(file, source.shown)
    if isinstance(found, Problem):
        return found
    document, problems = found
    state = new_state(source, pointer="/items")
    _fold(state, document)
    told = rollout(source, state, state)
    return (
        Reading(
            source, "codex-json", told.thread, file.size, file.modified_at, told, (*file.problems, *problems)
        ),
    )


def _object(file: FileBytes, path: str) -> tuple[Record, tuple[Problem, ...]] | Problem:
    """Return the document, or what is whole of one that is cut."""
    data, skipped = remove_nuls(file)
    match decode(data):
        case Decoded(dict(value), mended=mended) if _is_session(value):
            return value, (*skipped, *(problem(code, message, path) for code, message in mended))
        case Undecodable(code, message):
            text, mended = as_json_text(data)
            found = salvage(text, "items", lambda item: type(item) is dict and "type" in item)
            if found is not None and _is_session({**found.fields, "items": []}):
                line = text.count("\n", 0, found.broken_at) + 1
                told = problem("truncated-tail" if found.is_cut else code, message, path, line)
                replaced = (problem(code, message, path) for code, message in mended)
                return {**found.fields, "items": found.elements}, (told, *skipped, *replaced)
    return problem("not-a-session", "JSON, but no conversation in a known form", path)


def _is_session(value: Record) -> bool:
    return type(value.get("session")) is dict and type(value.get("items")) is list


def _fold(state: State, document: Record) -> None:
    beside = {key: value for key, value in document.items() if key not in ("session", "items")}
    meet_session(state, {**beside, **document["session"]}, None)
    state.records = 1
    for index, item in enumerate(document["items"]):
        state.records += 1
        state.place = index + 1
        state.notes.place = (0, index)
        fold_bare(state, _as_record(item))


def _as_record(item: Any) -> Record:
    return item if type(item) is dict else {"value": item}

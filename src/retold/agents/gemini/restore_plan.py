"""A session written back, so that Gemini CLI itself lists it and goes on with it.

Evidence: `docs/formats/gemini.md`, section 15; the tests run the real CLI on what is written here.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Any

import msgspec

from retold.agents.gemini.discovery import Mark, as_metadata, mark_of, marked_root, new_id, short_id
from retold.agents.gemini.raw import (
    ENVIRONMENT_ID,
    RESPONSE_SUFFIX,
    RESULTS_SUFFIX,
    SAID,
    SNAPSHOT,
    Record,
    plain_text,
    text_parts,
)
from retold.agents.gemini.reader import read
from retold.agents.gemini.replay import CONTEXT_ENDS, CONTEXT_OPENS, as_state
from retold.agents.gemini.session import Recorded, merged
from retold.agents.gemini.state import Key, State, active_records, is_loadable, is_resumable
from retold.agents.gemini.timeline import fates, richest
from retold.agents.protocol import Addition, AgentHome, Lost, Restored, RestoreRefused, Source, Target
from retold.model.problem import Problem
from retold.model.serialization import time_text
from retold.model.session import View
from retold.reading.disk import FileBytes, list_folder, read_bytes
from retold.reading.json_decode import Decoded, decode

NO_RESULT = "No result of this call was recorded."
_ACKNOWLEDGED = "Got it. Thanks for the additional context!"
_ANSWER = ("id", "timestamp", "type", "content", "thoughts", "tokens", "model")
_PROMPT = ("id", "timestamp", "type", "content", "displayContent")


def spoken(state: State, view: View) -> list[Record]:
    """Return the messages of a view at their richest, in order of first appearance, without what the CLI adds itself."""
    live = fates(state)
    found: list[Record] = []
    for key, versions in state.ever.items():
        if key in state.copies or (view == "active" and live.get(key) != "live"):
            continue
        record = richest(versions)[0] if type(versions[0][0]) is dict else None
        if record is not None and record.get("type") in SAID and not _is_setting(key, record):
            named = record if type(record.get("id")) is str else record | {"id": f"restored-{len(found)}"}
            found.append(_without_setting(named))
    return found if view == "active" else _without_snapshots(found)


def responses(state: State) -> dict[str, Record]:
    """Return the responses that stand in messages of their own, the first of each call."""
    found: dict[str, Record] = {}
    for versions in state.ever.values():
        for record, _ in versions:
            if type(record) is not dict or record.get("type") != "user":
                continue
            for part in text_parts(record.get("content")):
                response = part.get("functionResponse") if type(part) is dict else None
                if type(response) is dict and type(response.get("id")) is str:
                    found.setdefault(response["id"], part)
    return found


def as_lines(messages: Sequence[Record], given: Mapping[str, Record]) -> list[Record]:
    """Return messages for JSON lines: calls among the parts of an answer, their responses in a message of their own."""
    told: list[Record] = []
    for record, written, calls in _written_messages(messages):
        told.append(written)
        if calls:
            written["content"] = [*_words(record), *({"functionCall": call} for call in calls)]
            parts = [part for call in calls for part in _result(call, record, given)]
            behind = {
                "id": f"{record['id']}{RESULTS_SUFFIX}",
                "timestamp": record.get("timestamp"),
                "type": "user",
            }
            told.append(behind | {"content": parts})
    return told


def as_document(messages: Sequence[Record], given: Mapping[str, Record]) -> list[Record]:
    """Return messages for one JSON document: results in their calls, as versions up to 0.38 read them."""
    told: list[Record] = []
    for record, written, calls in _written_messages(messages):
        told.append(written)
        if calls:
            written["content"] = plain_text(record.get("content"))
            written["toolCalls"] = [
                _known(record, call) | call | {"result": list(_result(call, record, given))} for call in calls
            ]
    return told


def _written_messages(messages: Sequence[Record]) -> Iterator[tuple[Record, Record, list[Record]]]:
    """Yield each message, what is written of it, and its calls; what only holds responses is told with the calls."""
    for record in messages:
        if record["type"] == "gemini":
            yield record, _chosen(record, _ANSWER), list(_calls(record))
        elif not _is_response(record):
            yield record, _chosen(record, _PROMPT), []


def is_wellformed(messages: Sequence[Any]) -> bool:
    """Tell whether what the CLI makes of these when it resumes has exactly one response for each call, right behind it."""
    asked: list[str] = []
    for turn in _turns(messages):
        calls, responses = _names(turn, "functionCall"), _names(turn, "functionResponse")
        if sorted(responses) != sorted(asked):
            return False
        asked = calls
    return not asked


def _turns(messages: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the parts of each turn, as `convertSessionToClientHistory` of 0.61.0 makes them."""
    for record in messages:
        if type(record) is not dict or record.get("type") not in SAID:
            continue
        parts = text_parts(record.get("content"))
        if record["type"] == "user":
            if not plain_text(parts).strip().startswith(("/", "?", "<session_context>", "<hook_context>")):
                yield parts
            continue
        calls = _listed(record.get("toolCalls"))
        if not _names(parts, "functionCall"):
            parts = [*parts, *({"functionCall": call} for call in calls)]
        if parts:
            yield parts
        results = [part for call in calls for part in text_parts(call.get("result")) if type(part) is dict]
        if results:
            yield results


def _names(parts: Sequence[Any], kind: str) -> list[str]:
    holders = (part.get(kind) for part in parts if type(part) is dict)
    return [str(holder.get("id")) for holder in holders if type(holder) is dict]


def _is_setting(key: Key, record: Record) -> bool:
    """Tell whether the CLI wrote this to itself: it does so again."""
    if key == ENVIRONMENT_ID or str(key).endswith((RESPONSE_SUFFIX, RESULTS_SUFFIX)):
        return True
    words = plain_text(record.get("content")).strip()
    return record["type"] == "user" and words.startswith(CONTEXT_OPENS) and words.endswith(CONTEXT_ENDS)


def _without_setting(record: Record) -> Record:
    """Return a prompt without the setting that a cancel has merged into it; the CLI would drop both."""
    if record["type"] != "user" or not plain_text(record.get("content")).lstrip().startswith(CONTEXT_OPENS):
        return record
    kept = [
        part
        for part in text_parts(record["content"])
        if not plain_text([part]).lstrip().startswith(CONTEXT_OPENS)
    ]
    return record | {"content": kept}


def _without_snapshots(messages: Sequence[Record]) -> list[Record]:
    """Return everything that was said, without the summaries that `/compress` put in its place."""
    kept: list[Record] = []
    is_behind_snapshot = False
    for record in messages:
        words = plain_text(record.get("content")).strip()
        is_snapshot = words.startswith(SNAPSHOT)
        if not is_snapshot and not (is_behind_snapshot and words == _ACKNOWLEDGED):
            kept.append(record)
        is_behind_snapshot = is_snapshot
    return kept


def _is_response(record: Record) -> bool:
    """Tell whether a user's message holds nothing but responses of tools."""
    parts = text_parts(record.get("content"))
    return bool(parts) and all(
        type(part) is dict and type(part.get("functionResponse")) is dict for part in parts
    )


def _calls(record: Record) -> Iterator[Record]:
    """Yield id, name and arguments of the calls of an answer."""
    recorded = _listed(record.get("toolCalls"))
    among = [part["functionCall"] for part in text_parts(record.get("content")) if _is_call(part)]
    for number, call in enumerate(recorded or among):
        name, arguments = call.get("name"), call.get("args")
        known = call.get("id")
        yield {
            "id": known if type(known) is str and known else f"{record['id']}-{number}",
            "name": name if type(name) is str else "unknown",
            "args": arguments if type(arguments) is dict else {},
        }


def _known(record: Record, call: Record) -> Record:
    """Return what was recorded of a call."""
    return next((known for known in _listed(record.get("toolCalls")) if known.get("id") == call["id"]), {})


def _result(call: Record, record: Record, given: Mapping[str, Record]) -> Iterator[Record]:
    """Yield the one response of a call, and what came with it that is none."""
    result = _known(record, call).get("result")
    parts = [part for part in text_parts(result) if type(part) is dict] if type(result) is not str else []
    own = [part for part in parts if type(part.get("functionResponse")) is dict]
    response = next((part for part in own if part["functionResponse"].get("id") == call["id"]), None)
    if response is None and len(own) == 1 and own[0]["functionResponse"].get("id") is None:
        response = own[0]
    if response is None and type(result) is str:
        response = {"functionResponse": {"response": {"output": result}}}
    response = response or given.get(call["id"]) or {"functionResponse": {"response": {"error": NO_RESULT}}}
    named = {"id": call["id"], "name": call["name"]}
    yield response | {"functionResponse": {**response["functionResponse"], **named}}
    yield from (part for part in parts if "functionResponse" not in part)


def _words(record: Record) -> Iterator[Record]:
    for part in text_parts(record.get("content")):
        if type(part) is str and part:
            yield {"text": part}
        elif type(part) is dict and not _is_call(part) and part.get("thought") is not True:
            yield part


def _is_call(part: Any) -> bool:
    return type(part) is dict and type(part.get("functionCall")) is dict


def _listed(value: Any) -> list[Record]:
    return [item for item in value if type(item) is dict] if type(value) is list else []


def _chosen(record: Record, keys: Sequence[str]) -> Record:
    return {key: record[key] for key in keys if record.get(key) is not None}


_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


class Release(msgspec.Struct, frozen=True, order=True):
    """A version of the CLI."""

    major: int
    minor: int
    patch: int = 0

    @property
    def has_lines(self) -> bool:
        """Whether sessions are JSON lines, not one JSON document."""
        return self >= Release(0, 39)

    @property
    def has_slugs(self) -> bool:
        """Whether a project's folder has a name, not its hash."""
        return self >= Release(0, 29)


NEWEST = Release(0, 61)


def release(text: str) -> Release | None:
    """Return the version that a text names."""
    match = _NUMBERS.match(text.strip().removeprefix("v"))
    return None if match is None else Release(*(int(number or 0) for number in match.groups()))


MARKER = ".project_root"
_VALID = re.compile(r"[a-z0-9-]+")


def hash_of(root: str) -> str:
    """Return the hash by which the CLI knows a project."""
    return hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()


def slug_of(home: AgentHome, root: str) -> str:
    """Return the name of a project's folder: the one it has, or the one that the CLI would give it."""
    known, registry = _normal(root), _registry(home)
    registered = registry.get(known)
    if registered is not None and not _is_anothers(home, registered, known):
        return registered
    marked = next((name for name in _folders(home) if known in _owners(home, name)), None)
    if marked is not None:
        return marked
    taken = {name for path, name in registry.items() if path != known}
    base = slugified(os.path.basename(root) or "project")
    names = chain((base,), (f"{base}-{number}" for number in count(1)))
    return next(name for name in names if name not in taken and not _is_anothers(home, name, known))


def _normal(root: str) -> str:
    """Return a root as the CLI compares it: on Windows in small letters."""
    return root.lower() if os.name == "nt" else root


def slugified(name: str) -> str:
    """Return a name as the CLI makes it: small letters, digits, and single hyphens between them."""
    hyphened = re.sub(r"-+", "-", re.sub(r"[^a-z0-9]", "-", name.lower()))
    return re.sub(r"^-|-$", "", hyphened) or "project"


def _registry(home: AgentHome) -> Mapping[str, str]:
    """Return the registry; an empty one where the CLI would start again from nothing."""
    file = read_bytes(home.path / "projects.json", home.disk)
    decoded = decode(file.data) if isinstance(file, FileBytes) else None
    value: Any = decoded.value if isinstance(decoded, Decoded) and decoded.strict else None
    projects = value.get("projects") if type(value) is dict else None
    if type(projects) is not dict or not all(
        type(name) is str and _VALID.fullmatch(name) for name in projects.values()
    ):
        return {}
    return projects


def _folders(home: AgentHome) -> Iterator[str]:
    for base in (home.sessions, home.path / "history"):
        for entry in list_folder(base, home.disk):
            if not isinstance(entry, Problem) and entry.is_dir(follow_symlinks=False):
                yield entry.name


def _owners(home: AgentHome, name: str) -> set[str]:
    """Return the roots that markers in folders of this name tell."""
    bases = (home.sessions, home.path / "history")
    found = (marked_root(str(base / name), home.disk) for base in bases)
    return {_normal(root) for root in found if root is not None}


def _is_anothers(home: AgentHome, name: str, root: str) -> bool:
    return bool(_owners(home, name) - {root})


_SUMMARY = 120
_MOST_TIMES = 99


def resume(native_id: str) -> Sequence[str]:
    """Return the command that goes on with a session."""
    return ("gemini", "--resume", native_id)


def restore(lost: Lost, target: Target) -> Restored | RestoreRefused:
    """Return the files to write: the session last, so that it is found only when all is there."""
    found = [reading.state for reading in lost.readings if isinstance(reading.state, Recorded)]
    native_id = lost.session.native_id
    if lost.session.kind == "subagent" and lost.session.parent is not None:
        return RestoreRefused(f"{lost.session.key} is a subagent's: go on with {lost.session.parent}")
    if not found or native_id is None or lost.session.kind != "main":
        return RestoreRefused(f"{lost.session.key} holds no conversation that Gemini CLI could go on with")
    if target.root is None:
        return RestoreRefused(
            f"{lost.session.key}: the folder of its project is not known; name it with --project"
        )
    version = NEWEST if target.version is None else release(target.version)
    if version is None:
        return RestoreRefused(f"{target.version} is no version: write it as 0.61.0")
    folder = _folder(target.home, target.root, version)
    there = list(_there(folder, native_id, target.home))
    if target.view is None and (present := _present(there, is_clean=target.is_clean)) is not None:
        return Restored(present, ())
    state = as_state((found[0] if len(found) == 1 else merged(found)).state)
    return _written(_Draft(lost, target, version, folder, state), there)


def _folder(home: AgentHome, root: str, version: Release) -> Path:
    """Return a project's folder. What still lies under its hash is copied to its name by the CLI's next start, if nothing is there."""
    hashed = home.sessions / hash_of(root)
    if not version.has_slugs:
        return hashed
    named = home.sessions / slug_of(home, root)
    held = {entry.name for entry in list_folder(named, home.disk) if not isinstance(entry, Problem)}
    return hashed if not held - {MARKER} and home.disk.is_folder(str(hashed)) else named


class _Draft(msgspec.Struct, frozen=True):
    """What a session is written from, and where."""

    lost: Lost
    target: Target
    version: Release
    folder: Path
    state: State


def _there(folder: Path, native_id: str, home: AgentHome) -> Iterator[tuple[Path, State]]:
    """Yield the files of a project's folder that are of this session."""
    for entry in list_folder(folder / "chats", home.disk):
        if isinstance(entry, Problem) or not entry.name.startswith("session-"):
            continue
        if entry.is_file(follow_symlinks=False) and _may_be_of(entry.name, native_id):
            readings = read(Source(Path(entry.path), home))
            for reading in () if isinstance(readings, Problem) else readings:
                if isinstance(reading.state, Recorded) and reading.native_id == native_id:
                    yield Path(entry.path), as_state(reading.state.state)


def _may_be_of(name: str, native_id: str) -> bool:
    return any(
        f"-{short_id(one)}" in name for one in (native_id, *(new_id(native_id, n) for n in range(1, 10)))
    )


def _present(there: Sequence[tuple[Path, State]], *, is_clean: bool) -> str | None:
    """Return the id of what the CLI would list, the one updated last; only what it resumes well, if that is wanted."""
    usable = [
        state
        for _, state in there
        if is_loadable(state)
        and any(type(record) is dict and is_resumable(record) for record in active_records(state))
        and (not is_clean or is_wellformed(active_records(state)))
    ]
    latest = max(usable, key=lambda state: str(state.metadata.get("lastUpdated")), default=None)
    return None if latest is None else str(latest.metadata["sessionId"])


def _written(draft: _Draft, there: Sequence[tuple[Path, State]]) -> Restored | RestoreRefused:
    view, messages = _messages(draft)
    if not messages:
        return RestoreRefused(f"{draft.lost.session.key}: no message of it is left")
    digest = hashlib.sha256(_encoded(messages)).hexdigest()[:32]
    for path, state in there:
        mark = mark_of(state.metadata)
        if mark is not None and mark.digest == digest and path.suffix == _ending(draft.version):
            return Restored(str(state.metadata["sessionId"]), (), view)
    session_id, path = _free(draft, {path for path, _ in there})
    head = _head(draft, session_id, Mark(**_facts(draft), view=view, messages=len(messages), digest=digest))
    if draft.version.has_lines:
        data = b"".join(_encoded(record) + b"\n" for record in (head, *messages))
    else:
        data = msgspec.json.format(_encoded(head | {"messages": messages}), indent=2)
    return Restored(session_id, (*_beside(draft), Addition(path, data)), view)


def _messages(draft: _Draft) -> tuple[View, list[Record]]:
    """Return the messages of the view that is wanted; everything, where the CLI held nothing any more."""
    whole = spoken(draft.state, "full")
    view: View = draft.target.view or "active"
    chosen = whole if view == "full" else spoken(draft.state, "active")
    if draft.target.view is None and not any(map(is_resumable, chosen)):
        view, chosen = "full", whole
    given = responses(draft.state)
    return view, as_lines(chosen, given) if draft.version.has_lines else as_document(chosen, given)


def _free(draft: _Draft, taken: set[Path]) -> tuple[str, Path]:
    """Return an id and a name that are free. Before 0.39 there are no ghosts, and the id can stay what it was."""
    native_id = str(draft.lost.session.native_id)
    started_at = (draft.lost.session.started_at or draft.target.at).astimezone(UTC)
    chats, minute = draft.folder / "chats", started_at.strftime("%Y-%m-%dT%H-%M")
    ids = [new_id(native_id, number) for number in range(1, _MOST_TIMES)]
    for session_id in ids if draft.version.has_lines else [native_id, *ids]:
        path = chats / f"session-{minute}-{short_id(session_id)}{_ending(draft.version)}"
        if path not in taken and not draft.target.home.disk.is_file(str(path)):
            return session_id, path
    raise AssertionError("ninety-nine copies of one session")


def _ending(version: Release) -> str:
    return ".jsonl" if version.has_lines else ".json"


def _facts(draft: _Draft) -> dict[str, Any]:
    session = draft.lost.session
    return {
        "session_id": session.native_id,
        "project_hash": session.project.hash,
        "last_updated": None if session.ended_at is None else time_text(session.ended_at),
        "restored_at": _now(draft.target.at),
    }


def _head(draft: _Draft, session_id: str, mark: Mark) -> Record:
    """Return the metadata: fresh, since its age decides; with a summary, since the CLI would ask the model for one."""
    session, metadata = draft.lost.session, draft.state.metadata
    kept = {key: metadata[key] for key in ("directories",) if type(metadata.get(key)) is list}
    started_at = session.started_at or draft.target.at
    return {
        "sessionId": session_id,
        "projectHash": hash_of(str(draft.target.root)),
        "startTime": _now(started_at),
        "lastUpdated": mark.restored_at,
        "kind": "main",
        **kept,
        "summary": session.summary or (session.title or "")[:_SUMMARY] or session_id,
        "memoryScratchpad": {"version": 1},
        **as_metadata(mark),
    }


def _beside(draft: _Draft) -> Iterator[Addition]:
    """Yield what belongs to a session: the marker of its folder, outputs of its tools, its subagents."""
    disk = draft.target.home.disk
    is_hashed = draft.folder.name == hash_of(str(draft.target.root))
    if not is_hashed and not disk.is_file(str(draft.folder / MARKER)):
        yield Addition(draft.folder / MARKER, str(draft.target.root).encode("utf-8", "surrogateescape"))
    for source in draft.lost.files:
        place = _place(source, str(draft.lost.session.native_id))
        if place is not None and not disk.is_file(str(draft.folder / place)):
            yield Addition(draft.folder / place, source=source)


def _place(source: Source, native_id: str) -> Path | None:
    """Return where in a project's folder a file lay, if it is an output or a subagent of the session."""
    *_, above, folder, name = ("", "", *source.path.parts)
    ids = {short for one in (native_id, new_id(native_id, 1)) for short in (one, f"session-{one}")}
    if folder in ids and above in ("tool-outputs", "chats"):
        return Path(above, folder, name)
    return None


def _now(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)

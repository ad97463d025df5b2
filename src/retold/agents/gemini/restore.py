"""A session written back, so that Gemini CLI itself lists it and goes on with it.

Evidence: `docs/formats/gemini.md`, section 15; the tests run the real CLI on what is written here.
"""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from retold.agents.gemini.loader import active_records, is_loadable, is_resumable
from retold.agents.gemini.merge import merged
from retold.agents.gemini.places import short_id
from retold.agents.gemini.raw import Record
from retold.agents.gemini.read import read
from retold.agents.gemini.releases import NEWEST, Release, release
from retold.agents.gemini.replay import as_state
from retold.agents.gemini.restored import Mark, as_metadata, mark_of, new_id
from retold.agents.gemini.resumable import as_document, as_lines, is_wellformed, responses, spoken
from retold.agents.gemini.sessions import Recorded
from retold.agents.gemini.slugs import MARKER, hash_of, slug_of
from retold.agents.gemini.state import State
from retold.agents.protocol import Addition, AgentHome, Lost, Restored, RestoreRefused, Source, Target
from retold.model.problem import Problem
from retold.model.serialization import time_text
from retold.model.session import View
from retold.reading.disk import list_folder

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

"""Restores a session so that Gemini CLI lists and resumes it.

Evidence: `docs/formats/gemini.md`, section 15; the tests run the real CLI on the restored files.
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

from retold.agents.gemini.discovery import (
    RestoreMark,
    encode_mark,
    make_restored_id,
    mark_of,
    read_project_root,
    short_id,
)
from retold.agents.gemini.raw import (
    ENVIRONMENT_ID,
    RESPONSE_SUFFIX,
    RESULTS_SUFFIX,
    SNAPSHOT,
    SPOKEN_TYPES,
    Record,
    plain_text,
    text_parts,
)
from retold.agents.gemini.reader import read
from retold.agents.gemini.replay import CONTEXT_ENDS, CONTEXT_OPENS, to_state
from retold.agents.gemini.session import merge_files
from retold.agents.gemini.state import (
    Key,
    State,
    Transcript,
    active_records,
    has_conversation,
    is_loadable,
    is_resumable,
    merge_versions,
    resolve_fates,
)
from retold.agents.protocol import (
    Addition,
    AgentHome,
    LostSession,
    RestoreAdditions,
    RestoreRefusal,
    Source,
    Target,
)
from retold.model.problem import Problem
from retold.model.serialization import format_utc
from retold.model.session import View
from retold.reading.disk import FileBytes, files_in, folders_in, list_folder, read_bytes
from retold.reading.json_decode import JsonValue, decode

NO_RESULT = "No result of this call was recorded."
_ACKNOWLEDGEMENT = "Got it. Thanks for the additional context!"
_ANSWER = ("id", "timestamp", "type", "content", "thoughts", "tokens", "model")
_PROMPT = ("id", "timestamp", "type", "content", "displayContent")


def select_messages(state: State, view: View) -> list[Record]:
    """Return the merged messages of a view in order of first appearance, without those that the CLI adds itself."""
    live = resolve_fates(state)
    found: list[Record] = []
    for key, versions in state.versions.items():
        if key in state.copies or (view == "active" and live.get(key) != "live"):
            continue
        record = merge_versions(versions)[0] if type(versions[0][0]) is dict else None
        if record is not None and record.get("type") in SPOKEN_TYPES and not _is_agent_context(key, record):
            named = record if type(record.get("id")) is str else record | {"id": f"restored-{len(found)}"}
            found.append(_strip_context(named))
    return found if view == "active" else _strip_snapshots(found)


def find_responses(state: State) -> dict[str, Record]:
    """Return the tool responses in messages of their own, the first for each call."""
    found: dict[str, Record] = {}
    for versions in state.versions.values():
        for record, _ in versions:
            if type(record) is not dict or record.get("type") != "user":
                continue
            for part in text_parts(record.get("content")):
                response = part.get("functionResponse") if type(part) is dict else None
                if type(response) is dict and type(response.get("id")) is str:
                    found.setdefault(response["id"], part)
    return found


def to_lines(messages: Sequence[Record], given: Mapping[str, Record]) -> list[Record]:
    """Return messages for JSON lines: calls among the parts of an answer, their responses in a message of their own."""
    lines: list[Record] = []
    for record, written, calls in _written_messages(messages):
        lines.append(written)
        if calls:
            written["content"] = [*_spoken_parts(record), *({"functionCall": call} for call in calls)]
            parts = [part for call in calls for part in _call_responses(call, record, given)]
            results = {
                "id": f"{record['id']}{RESULTS_SUFFIX}",
                "timestamp": record.get("timestamp"),
                "type": "user",
            }
            lines.append(results | {"content": parts})
    return lines


def to_document(messages: Sequence[Record], given: Mapping[str, Record]) -> list[Record]:
    """Return messages for one JSON document: results in their calls, as versions up to 0.38 read them."""
    document: list[Record] = []
    for record, written, calls in _written_messages(messages):
        document.append(written)
        if calls:
            written["content"] = plain_text(record.get("content"))
            written["toolCalls"] = [
                _recorded_call(record, call) | call | {"result": list(_call_responses(call, record, given))}
                for call in calls
            ]
    return document


def _written_messages(messages: Sequence[Record]) -> Iterator[tuple[Record, Record, list[Record]]]:
    """Yield each message, its written form, and its calls; messages of responses alone are left out."""
    for record in messages:
        if record["type"] == "gemini":
            yield record, _select_keys(record, _ANSWER), list(_calls(record))
        elif not _is_response(record):
            yield record, _select_keys(record, _PROMPT), []


def is_well_formed(messages: Sequence[Any]) -> bool:
    """Return whether the CLI, on resuming these messages, gets exactly one response for each call, right behind it."""
    open_calls: list[str] = []
    for turn in _turns(messages):
        calls, responses = _part_ids(turn, "functionCall"), _part_ids(turn, "functionResponse")
        if sorted(responses) != sorted(open_calls):
            return False
        open_calls = calls
    return not open_calls


def _turns(messages: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield the parts of each turn, as `convertSessionToClientHistory` of 0.61.0 does."""
    for record in messages:
        if type(record) is not dict or record.get("type") not in SPOKEN_TYPES:
            continue
        parts = text_parts(record.get("content"))
        if record["type"] == "user":
            if not plain_text(parts).strip().startswith(("/", "?", "<session_context>", "<hook_context>")):
                yield parts
            continue
        calls = _as_records(record.get("toolCalls"))
        if not _part_ids(parts, "functionCall"):
            parts = [*parts, *({"functionCall": call} for call in calls)]
        if parts:
            yield parts
        results = [part for call in calls for part in text_parts(call.get("result")) if type(part) is dict]
        if results:
            yield results


def _part_ids(parts: Sequence[Any], kind: str) -> list[str]:
    holders = (part.get(kind) for part in parts if type(part) is dict)
    return [str(holder.get("id")) for holder in holders if type(holder) is dict]


def _is_agent_context(key: Key, record: Record) -> bool:
    """Return whether the CLI wrote a message as context for itself: it will do so again."""
    if key == ENVIRONMENT_ID or str(key).endswith((RESPONSE_SUFFIX, RESULTS_SUFFIX)):
        return True
    words = plain_text(record.get("content")).strip()
    return record["type"] == "user" and words.startswith(CONTEXT_OPENS) and words.endswith(CONTEXT_ENDS)


def _strip_context(record: Record) -> Record:
    """Return a prompt without the context that a cancel merged into it; the CLI would drop both."""
    if record["type"] != "user" or not plain_text(record.get("content")).lstrip().startswith(CONTEXT_OPENS):
        return record
    parts = [
        part
        for part in text_parts(record["content"])
        if not plain_text([part]).lstrip().startswith(CONTEXT_OPENS)
    ]
    return record | {"content": parts}


def _strip_snapshots(messages: Sequence[Record]) -> list[Record]:
    """Return all messages but the summaries of `/compress`."""
    messages_left: list[Record] = []
    is_behind_snapshot = False
    for record in messages:
        words = plain_text(record.get("content")).strip()
        is_snapshot = words.startswith(SNAPSHOT)
        if not is_snapshot and not (is_behind_snapshot and words == _ACKNOWLEDGEMENT):
            messages_left.append(record)
        is_behind_snapshot = is_snapshot
    return messages_left


def _is_response(record: Record) -> bool:
    parts = text_parts(record.get("content"))
    return bool(parts) and all(
        type(part) is dict and type(part.get("functionResponse")) is dict for part in parts
    )


def _calls(record: Record) -> Iterator[Record]:
    """Yield id, name and arguments of the calls of an answer."""
    recorded = _as_records(record.get("toolCalls"))
    among = [part["functionCall"] for part in text_parts(record.get("content")) if _is_call(part)]
    for number, call in enumerate(recorded or among):
        name, arguments = call.get("name"), call.get("args")
        known = call.get("id")
        yield {
            "id": known if type(known) is str and known else f"{record['id']}-{number}",
            "name": name if type(name) is str else "unknown",
            "args": arguments if type(arguments) is dict else {},
        }


def _recorded_call(record: Record, call: Record) -> Record:
    return next(
        (known for known in _as_records(record.get("toolCalls")) if known.get("id") == call["id"]), {}
    )


def _call_responses(call: Record, record: Record, given: Mapping[str, Record]) -> Iterator[Record]:
    """Yield the response of a call, then the other parts of its result."""
    result = _recorded_call(record, call).get("result")
    parts = [part for part in text_parts(result) if type(part) is dict] if type(result) is not str else []
    responses = [part for part in parts if type(part.get("functionResponse")) is dict]
    response = next((part for part in responses if part["functionResponse"].get("id") == call["id"]), None)
    if response is None and len(responses) == 1 and responses[0]["functionResponse"].get("id") is None:
        response = responses[0]
    if response is None and type(result) is str:
        response = {"functionResponse": {"response": {"output": result}}}
    response = response or given.get(call["id"]) or {"functionResponse": {"response": {"error": NO_RESULT}}}
    named = {"id": call["id"], "name": call["name"]}
    yield response | {"functionResponse": {**response["functionResponse"], **named}}
    yield from (part for part in parts if "functionResponse" not in part)


def _spoken_parts(record: Record) -> Iterator[Record]:
    for part in text_parts(record.get("content")):
        if type(part) is str and part:
            yield {"text": part}
        elif type(part) is dict and not _is_call(part) and part.get("thought") is not True:
            yield part


def _is_call(part: Any) -> bool:
    return type(part) is dict and type(part.get("functionCall")) is dict


def _as_records(value: Any) -> list[Record]:
    return [item for item in value if type(item) is dict] if type(value) is list else []


def _select_keys(record: Record, keys: Sequence[str]) -> Record:
    return {key: record[key] for key in keys if record.get(key) is not None}


_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


class Release(msgspec.Struct, frozen=True, order=True):
    """A version of the CLI."""

    major: int
    minor: int
    patch: int = 0

    @property
    def has_lines(self) -> bool:
        """Whether sessions are JSON lines instead of one JSON document."""
        return self >= Release(0, 39)

    @property
    def has_slugs(self) -> bool:
        """Whether a project's folder is named by a slug instead of a hash."""
        return self >= Release(0, 29)


NEWEST = Release(0, 61)


def parse_release(text: str) -> Release | None:
    """Return the version in a text, None if there is none."""
    match = _NUMBERS.match(text.strip().removeprefix("v"))
    return None if match is None else Release(*(int(number or 0) for number in match.groups()))


MARKER = ".project_root"
_VALID = re.compile(r"[a-z0-9-]+")


def hash_root(root: str) -> str:
    """Return the hash by which the CLI knows a project."""
    return hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()


def find_slug(home: AgentHome, root: str) -> str:
    """Return the slug of a project: the one it has, or the one that the CLI would choose."""
    known, registry = _normalise_root(root), _read_registry(home)
    registered = registry.get(known)
    if registered is not None and not _belongs_to_other(home, registered, known):
        return registered
    marked = next((name for name in _find_folder_names(home) if known in _read_owners(home, name)), None)
    if marked is not None:
        return marked
    taken = {name for path, name in registry.items() if path != known}
    base = slugify(os.path.basename(root) or "project")
    names = chain((base,), (f"{base}-{number}" for number in count(1)))
    return next(name for name in names if name not in taken and not _belongs_to_other(home, name, known))


def _normalise_root(root: str) -> str:
    """Return a root as the CLI compares it: in lower case on Windows."""
    return root.lower() if os.name == "nt" else root


def slugify(name: str) -> str:
    """Return a name as the CLI makes a slug of it: lower-case letters, digits, and single hyphens between them."""
    hyphened = re.sub(r"-+", "-", re.sub(r"[^a-z0-9]", "-", name.lower()))
    return re.sub(r"^-|-$", "", hyphened) or "project"


def _read_registry(home: AgentHome) -> Mapping[str, str]:
    """Return the registry; an empty one if the CLI would reject it."""
    file = read_bytes(home.path / "projects.json", home.disk)
    decoded = decode(file.data) if isinstance(file, FileBytes) else None
    value: Any = decoded.value if isinstance(decoded, JsonValue) and decoded.strict else None
    projects = value.get("projects") if type(value) is dict else None
    if type(projects) is not dict or not all(
        type(name) is str and _VALID.fullmatch(name) for name in projects.values()
    ):
        return {}
    return projects


def _find_folder_names(home: AgentHome) -> Iterator[str]:
    for base in (home.sessions, home.path / "history"):
        yield from (entry.name for entry in folders_in(base, home.disk))


def _read_owners(home: AgentHome, name: str) -> set[str]:
    bases = (home.sessions, home.path / "history")
    found = (read_project_root(str(base / name), home.disk) for base in bases)
    return {_normalise_root(root) for root in found if root is not None}


def _belongs_to_other(home: AgentHome, name: str, root: str) -> bool:
    return bool(_read_owners(home, name) - {root})


_SUMMARY = 120
_MOST_TIMES = 99


def resume_command(native_id: str) -> Sequence[str]:
    """Return the command that resumes a session."""
    return ("gemini", "--resume", native_id)


def plan_restore(lost: LostSession, target: Target) -> RestoreAdditions | RestoreRefusal:
    """Return the files to write; the session comes last, so that the CLI finds it only when all is there."""
    session_files = [reading.state for reading in lost.readings if isinstance(reading.state, Transcript)]
    native_id = lost.session.native_id
    if lost.session.kind == "subagent" and lost.session.parent is not None:
        return RestoreRefusal(f"{lost.session.key} is a subagent's: go on with {lost.session.parent}")
    if not session_files or native_id is None or lost.session.kind != "main":
        return RestoreRefusal(f"{lost.session.key} holds no conversation that Gemini CLI could go on with")
    if target.root is None:
        return RestoreRefusal(
            f"{lost.session.key}: the folder of its project is not known; name it with --project"
        )
    version = NEWEST if target.version is None else parse_release(target.version)
    if version is None:
        return RestoreRefusal(f"{target.version} is no version: write it as 0.61.0")
    folder = _find_folder(target.home, target.root, version)
    present = list(_find_present_files(folder, native_id, target.home))
    if target.view is None and (present_id := _find_resumable(present, is_clean=target.is_clean)) is not None:
        return RestoreAdditions(present_id, ())
    state = to_state((session_files[0] if len(session_files) == 1 else merge_files(session_files)).state)
    return _plan_file(_RestoreDraft(lost, target, version, folder, state), present)


def _find_folder(home: AgentHome, root: str, version: Release) -> Path:
    """Return a project's folder: if nothing is in the slug's, the CLI's next start copies the folder of the hash to it."""
    hashed = home.sessions / hash_root(root)
    if not version.has_slugs:
        return hashed
    named = home.sessions / find_slug(home, root)
    names = {entry.name for entry in list_folder(named, home.disk) if not isinstance(entry, Problem)}
    return hashed if not names - {MARKER} and home.disk.is_folder(str(hashed)) else named


class _RestoreDraft(msgspec.Struct, frozen=True):
    """The source and the place of a restored session."""

    lost: LostSession
    target: Target
    version: Release
    folder: Path
    state: State


def _find_present_files(folder: Path, native_id: str, home: AgentHome) -> Iterator[tuple[Path, State]]:
    for entry in files_in(folder / "chats", home.disk):
        if entry.name.startswith("session-") and _may_belong_to(entry.name, native_id):
            readings = read(Source(Path(entry.path), home))
            for reading in () if isinstance(readings, Problem) else readings:
                if isinstance(reading.state, Transcript) and reading.native_id == native_id:
                    yield Path(entry.path), to_state(reading.state.state)


def _may_belong_to(name: str, native_id: str) -> bool:
    return any(
        f"-{short_id(one)}" in name
        for one in (native_id, *(make_restored_id(native_id, n) for n in range(1, 10)))
    )


def _find_resumable(present: Sequence[tuple[Path, State]], *, is_clean: bool) -> str | None:
    """Return the id of the session that the CLI would list, the one updated last; with `is_clean`, of one that it resumes well."""
    usable = [
        state
        for _, state in present
        if is_loadable(state)
        and has_conversation(state)
        and (not is_clean or is_well_formed(active_records(state)))
    ]
    latest = max(usable, key=lambda state: str(state.metadata.get("lastUpdated")), default=None)
    return None if latest is None else str(latest.metadata["sessionId"])


def _plan_file(
    draft: _RestoreDraft, present: Sequence[tuple[Path, State]]
) -> RestoreAdditions | RestoreRefusal:
    view, messages = _select_view(draft)
    if not messages:
        return RestoreRefusal(f"{draft.lost.session.key}: no message of it is left")
    digest = hashlib.sha256(_encode(messages)).hexdigest()[:32]
    for path, state in present:
        mark = mark_of(state.metadata)
        if mark is not None and mark.digest == digest and path.suffix == _ending(draft.version):
            return RestoreAdditions(str(state.metadata["sessionId"]), (), view)
    session_id, path = _find_free_name(draft, {path for path, _ in present})
    head = _make_metadata(
        draft,
        session_id,
        RestoreMark(**_mark_fields(draft), view=view, messages=len(messages), digest=digest),
    )
    if draft.version.has_lines:
        data = b"".join(_encode(record) + b"\n" for record in (head, *messages))
    else:
        data = msgspec.json.format(_encode(head | {"messages": messages}), indent=2)
    return RestoreAdditions(session_id, (*_companion_files(draft), Addition(path, data)), view)


def _select_view(draft: _RestoreDraft) -> tuple[View, list[Record]]:
    """Return the messages of the chosen view; those of the full view if the active one has nothing to resume."""
    whole = select_messages(draft.state, "full")
    view: View = draft.target.view or "active"
    chosen = whole if view == "full" else select_messages(draft.state, "active")
    if draft.target.view is None and not any(map(is_resumable, chosen)):
        view, chosen = "full", whole
    given = find_responses(draft.state)
    return view, to_lines(chosen, given) if draft.version.has_lines else to_document(chosen, given)


def _find_free_name(draft: _RestoreDraft, taken: set[Path]) -> tuple[str, Path]:
    """Return a free id and path. Before 0.39 there are no ghosts, so the id can stay the same."""
    native_id = str(draft.lost.session.native_id)
    started_at = (draft.lost.session.started_at or draft.target.at).astimezone(UTC)
    chats, minute = draft.folder / "chats", started_at.strftime("%Y-%m-%dT%H-%M")
    ids = [make_restored_id(native_id, number) for number in range(1, _MOST_TIMES)]
    for session_id in ids if draft.version.has_lines else [native_id, *ids]:
        path = chats / f"session-{minute}-{short_id(session_id)}{_ending(draft.version)}"
        if path not in taken and not draft.target.home.disk.is_file(str(path)):
            return session_id, path
    raise AssertionError("ninety-nine copies of one session")


def _ending(version: Release) -> str:
    return ".jsonl" if version.has_lines else ".json"


def _mark_fields(draft: _RestoreDraft) -> dict[str, Any]:
    session = draft.lost.session
    return {
        "session_id": session.native_id,
        "project_hash": session.project.hash,
        "last_updated": None if session.ended_at is None else format_utc(session.ended_at),
        "restored_at": _format_time(draft.target.at),
    }


def _make_metadata(draft: _RestoreDraft, session_id: str, mark: RestoreMark) -> Record:
    """Return the metadata: with a new time, since the CLI deletes by age, and a summary, since it would ask the model for one."""
    session, metadata = draft.lost.session, draft.state.metadata
    directories = {key: metadata[key] for key in ("directories",) if type(metadata.get(key)) is list}
    started_at = session.started_at or draft.target.at
    return {
        "sessionId": session_id,
        "projectHash": hash_root(str(draft.target.root)),
        "startTime": _format_time(started_at),
        "lastUpdated": mark.restored_at,
        "kind": "main",
        **directories,
        "summary": session.summary or (session.title or "")[:_SUMMARY] or session_id,
        "memoryScratchpad": {"version": 1},
        **encode_mark(mark),
    }


def _companion_files(draft: _RestoreDraft) -> Iterator[Addition]:
    """Yield the other files of a session: the marker of its folder, tool outputs, subagents."""
    disk = draft.target.home.disk
    is_hashed = draft.folder.name == hash_root(str(draft.target.root))
    if not is_hashed and not disk.is_file(str(draft.folder / MARKER)):
        yield Addition(draft.folder / MARKER, str(draft.target.root).encode("utf-8", "surrogateescape"))
    for source in draft.lost.files:
        place = _companion_path(source, str(draft.lost.session.native_id))
        if place is not None and not disk.is_file(str(draft.folder / place)):
            yield Addition(draft.folder / place, source=source)


def _companion_path(source: Source, native_id: str) -> Path | None:
    """Return the path of a tool output or a subagent within a project's folder; None for another file."""
    *_, above, folder, name = ("", "", *source.path.parts)
    ids = {short for one in (native_id, make_restored_id(native_id, 1)) for short in (one, f"session-{one}")}
    if folder in ids and above in ("tool-outputs", "chats"):
        return Path(above, folder, name)
    return None


def _format_time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value)

"""Makes the Session of the readings of one conversation, and links sessions with their subagents."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import reduce
from itertools import chain, islice, zip_longest
from typing import Any

import msgspec
from msgspec.structs import replace

from retold.agents.bookmarks import KnownIds, ReadWholeError
from retold.agents.gemini.discovery import (
    WRITTEN_KEYS,
    Origin,
    RestoreMark,
    agent_id_of,
    mark_of,
    parent_id_of,
    session_group_key,
)
from retold.agents.gemini.messages import make_active_timeline, make_full_timeline
from retold.agents.gemini.raw import ENVIRONMENT_ID, METADATA_KEYS, AnswerRecord, Record
from retold.agents.gemini.replay import to_state
from retold.agents.gemini.state import (
    CleanDocument,
    History,
    Key,
    Notes,
    Place,
    PromptLog,
    RecordContext,
    State,
    Transcript,
    Version,
    active_records,
    add_version,
    has_conversation,
    is_loadable,
    is_resumable,
    merge_copies,
    survives_fallback,
)
from retold.agents.gemini.tool_calls import STARTS_AGENT
from retold.agents.gemini.tool_results import OutputFiles
from retold.agents.protocol import Reading, source_file
from retold.model.builder import Draft, assemble_session, estimate_usage
from retold.model.problem import Problem, problem
from retold.model.serialization import allow_deep_values
from retold.model.session import Coverage, Entry, Message, Project, Session, SessionStatus, ToolCall, View
from retold.reading.diagnostics import to_milliseconds
from retold.reading.json_decode import text_or_none


def group_key(reading: Reading) -> str | None:
    """Return a key of project and session id.

    An id that is no UUID counts together with the first message's id: `a2a-server` names hundreds of sessions.
    A reading without an id has no key.
    """
    match reading.state:
        case Transcript() as transcript:
            return _session_group(transcript, reading) if reading.native_id is not None else None
        case PromptLog(project_hash=project):
            return f"session:{project}:{reading.native_id}"
        case History(origin=origin, project_hash=project, kind="checkpoint" | "main" as kind):
            name = "checkpoint" if kind == "checkpoint" else "history"
            return f"{name}:{project or origin.project_folder}:{origin.stem}"
    return f"{reading.format}:{reading.source.path}"


def log_folder(reading: Reading) -> str | None:
    """Return the project's folder for a logged prompt and for a main session.

    The project hash is not enough: a folder named by a slug may lack its marker, or have one whose spelling of the path
    differs from the one that was hashed.
    """
    match reading.state:
        case PromptLog(origin=origin):
            return origin.project_folder or None
        case Transcript(origin, state) if (
            origin.parent_id is None and _grouping_facts(state)[1] != "subagent"
        ):
            return origin.project_folder or None
    return None


def _session_group(transcript: Transcript, reading: Reading) -> str:
    project, kind, first = _grouping_facts(transcript.state)
    return session_group_key(
        transcript.origin, reading.native_id or "", project, kind, first or str(reading.source.path)
    )


def _grouping_facts(state: State | CleanDocument) -> tuple[object, object, str | None]:
    """Return a file's project hash and kind, and the id of the first message that is not the CLI's own."""
    if isinstance(state, CleanDocument):
        record = state.record
        said = (message.id for message in record.messages if message.id != ENVIRONMENT_ID)
        return record.project_hash, record.kind, next(said, None)
    names = (name for name in state.versions if type(name) is str and name != ENVIRONMENT_ID)
    mark = mark_of(state.metadata)
    project = state.metadata.get("projectHash") if mark is None else mark.project_hash
    return project, state.metadata.get("kind"), next(names, None)


def join(readings: Sequence[Reading], view: View = "full") -> Session:
    """Return the Session of all readings of one conversation."""
    with allow_deep_values():
        ordered = sorted(readings, key=lambda reading: reading.source.display_path)
        return assemble_session(_choose_draft(ordered, view), view)


def _choose_draft(readings: Sequence[Reading], view: View) -> Draft:
    session_files = [reading for reading in readings if isinstance(reading.state, Transcript)]
    prompt_logs = [reading for reading in readings if isinstance(reading.state, PromptLog)]
    if session_files and not (prompt_logs and _is_empty(session_files)):
        # Several contents of one file: the earlier first, so that the later one counts.
        files = [reading.state for reading in sorted(session_files, key=lambda reading: reading.modified_at)]
        return make_draft(files[0] if len(files) == 1 else merge_files(files), session_files, view)
    from retold.agents.gemini.other_files import make_capture_draft, make_history_draft, make_prompts_draft

    if prompt_logs:
        return make_prompts_draft([*prompt_logs, *session_files])
    # Copies of a saved history: the longest, and of equals the one whose folder has a slug.
    best = max(
        readings, key=lambda reading: (_turn_count(reading.state), reading.state.origin.hash_in_path is None)
    )
    sources = tuple(source_file(reading) for reading in readings)
    draft = make_history_draft(best) if isinstance(best.state, History) else make_capture_draft(best)
    return replace(draft, sources=sources)


def _is_empty(readings: Sequence[Reading]) -> bool:
    """Return whether the CLI would resume nothing of these files: ghosts, or abandoned starts."""
    records = (
        versions[-1][0]
        for reading in readings
        for versions in to_state(reading.state.state).versions.values()
    )
    return not any(type(record) is dict and is_resumable(record) for record in records)


def _turn_count(state: object) -> int:
    return len(state.turns) if isinstance(state, History) else 0


def make_draft(file: Transcript, readings: Sequence[Reading], view: View) -> Draft:
    """Return the draft of a session from one file, or from several files merged."""
    about = _gather_facts(file.state)
    notes = Notes(file.state.path, "/messages")
    native_id = next((reading.native_id for reading in readings if reading.native_id is not None), None)
    is_subagent = file.origin.parent_id is not None or about.metadata.get("kind") == "subagent"
    parent = _parent(file.origin)
    key = f"{parent}/{file.origin.stem}" if parent else f"gemini:{file.origin.stem}"
    context = RecordContext(notes, native_id or file.origin.stem, key, is_subagent, file.outputs)
    full, earlier = make_full_timeline(file.state, context), file.earlier
    if earlier is not None and isinstance(file.state, State):
        _check_later_part(file.state, full, notes.problems, earlier.known)
    elif all(entry.usage is None for entry in full if type(entry) is Message):
        full = estimate_usage(full, context.native_id)
    modified_at = min(reading.modified_at for reading in readings)
    started_at, ended_at, are_derived = _times(file, about, full, notes, modified_at)
    extra = _extra(about, notes)
    reading_problems = [problem for reading in readings for problem in reading.problems]
    project_hash = text_or_none(about.metadata.get("projectHash")) or file.origin.hash_in_path
    return Draft(
        key=key,
        agent="gemini",
        native_id=native_id,
        kind="subagent" if is_subagent else "main",
        project=Project(None, file.origin.project_key, project_hash, "none"),
        summary=text_or_none(about.metadata.get("summary")),
        started_at=started_at,
        ended_at=ended_at,
        are_times_derived=are_derived,
        status=about.status,
        parent=parent,
        sources=tuple(source_file(reading) for reading in readings),
        coverage=Coverage(
            max(about.records, 1), notes.opaque + about.opaque + (earlier.opaque if earlier else 0)
        ),
        problems=(
            *reading_problems,
            *about.problems,
            *(earlier.problems if earlier else ()),
            *notes.problems,
            *_warnings(file, native_id, about),
            *(_token_warnings(file, full) if notes.may_lack_tokens or earlier else ()),
        ),
        extra=extra,
        full=full,
        active=full if view == "full" else _make_active(file, context),
        beginning=earlier.beginning if earlier else None,
    )


def _check_later_part(
    state: State, timeline: Sequence[Entry], problems: Sequence[Problem], known: KnownIds
) -> None:
    """Raise ReadWholeError if the messages behind a bookmark concern those before it."""
    if any(one.code in ("orphan-tool-result", "missing-output") for one in problems):
        raise ReadWholeError("a result of an earlier call, or one in a file")
    if not state.live or all(entry.at is None for entry in timeline):
        raise ReadWholeError("nothing is said")
    parts = chain.from_iterable(entry.parts for entry in timeline if type(entry) is Message)
    for call in (part for part in parts if type(part) is ToolCall):
        known.check(call.id)
        if call.name in STARTS_AGENT:
            raise ReadWholeError("a subagent")


class FileFacts(msgspec.Struct, frozen=True, gc=False):
    """The contents of a file other than its messages."""

    metadata: Record
    starts: tuple[Any, ...]
    records: int
    opaque: int
    problems: tuple[Problem, ...]
    is_loadable: bool
    status: SessionStatus


def _gather_facts(state: State | CleanDocument) -> FileFacts:
    if isinstance(state, State):
        opaque = sum(one.code in ("unknown-record", "unexpected-shape") for one in state.problems)
        status = _status(active_records(state))
        return FileFacts(
            state.metadata, state.starts, state.records, opaque, state.problems, is_loadable(state), status
        )
    record = state.record
    metadata: Record = {
        "projectHash": record.project_hash,
        "lastUpdated": record.last_updated,
        "summary": record.summary,
        "kind": record.kind,
    }
    optional = {"directories": record.directories, "memoryScratchpad": record.memory_scratchpad}
    metadata |= {key: value for key, value in optional.items() if value is not None}
    loads = survives_fallback(map(msgspec.to_builtins, record.messages))
    status = _status_of_plain(state) if loads else "interrupted"
    return FileFacts(metadata, (record.start_time,), len(record.messages) + 1, 0, (), loads, status)


def _status_of_plain(document: CleanDocument) -> SessionStatus:
    last = document.record.messages[-1] if document.record.messages else None
    if not isinstance(last, AnswerRecord):
        return "interrupted"
    return "failure" if any(call.status == "error" for call in last.tool_calls or ()) else "success"


def _make_active(file: Transcript, context: RecordContext) -> tuple[Entry, ...]:
    notes = Notes(file.state.path)
    return make_active_timeline(to_state(file.state), replace(context, notes=notes))


def _extra(about: FileFacts, notes: Notes) -> Record:
    """Return the unknown metadata, and the known metadata without a field in Session."""
    unknown = {key: value for key, value in about.metadata.items() if key not in METADATA_KEYS}
    if unknown:
        notes.place = None
        notes.add_opaque("unknown-part", "unknown keys about the session: " + ", ".join(sorted(unknown)))
    known = ("directories", "memoryScratchpad")
    return unknown | {key: value for key, value in about.metadata.items() if key in known}


def _warnings(file: Transcript, native_id: str | None, about: FileFacts) -> Iterator[Problem]:
    if native_id is None:
        yield problem("no-metadata", "the file says no session id", file.state.path)
    elif not about.is_loadable:
        yield problem("unreadable-by-agent", "Gemini CLI's own loader gives this file up", file.state.path)


def _token_warnings(file: Transcript, timeline: Sequence[Entry]) -> Iterator[Problem]:
    responses, counted = count_responses(timeline)
    if file.earlier is not None:
        responses, counted = responses + file.earlier.responses, counted + file.earlier.counted
    if 0 < counted < responses:
        message = f"at least {responses - counted} of {responses} responses have no token count"
        yield problem("tokens-unrecorded", message, file.state.path)


def _parent(origin: Origin) -> str | None:
    return f"gemini:{origin.parent_stem or origin.parent_id}" if origin.parent_id else None


def _status(records: Sequence[Any]) -> SessionStatus:
    """Return how the session ended, by the last record that the CLI would load."""
    last = records[-1] if records else None
    if type(last) is not dict or last.get("type") != "gemini":
        return "interrupted"
    calls = last.get("toolCalls")
    failed = type(calls) is list and any(
        type(call) is dict and call.get("status") == "error" for call in calls
    )
    return "failure" if failed else "success"


def _times(
    file: Transcript, about: FileFacts, timeline: tuple[Entry, ...], notes: Notes, modified_at: datetime
) -> tuple[datetime | None, datetime | None, bool]:
    notes.place = None
    first_said = next((entry.at for entry in timeline if entry.at is not None), None)
    last_said = next((entry.at for entry in reversed(timeline) if entry.at is not None), None)
    starts = [at for at in map(notes.parse_time, about.starts) if at is not None]
    started_at = min(starts, default=first_said)
    mark, updated = mark_of(about.metadata), about.metadata.get("lastUpdated")
    if mark is not None and updated == mark.restored_at:  # a restore wrote this time
        updated = mark.last_updated
    ends = (notes.parse_time(updated), last_said)
    ended_at = max((at for at in ends if at is not None), default=None)
    if started_at is None and ended_at is None:
        derived = file.origin.time_in_name or modified_at
        return derived, derived, True
    return started_at or ended_at, ended_at or started_at, False


def merge_files(files: Sequence[Transcript]) -> Transcript:
    """Return the files of one conversation merged into one; of several contents of a file the last counts."""
    ordered = sorted(files, key=_order)
    states = [to_state(file.state) for file in ordered]
    names = _all_versions(states)[1]
    ever = _all_versions(_without_restored(states))[0]
    latest_first = reversed(list(zip(states, names, strict=True)))
    active, own_names = max(latest_first, key=lambda pair: _recency(pair[0]))
    listed = own_names if active.document_messages is not None else frozenset(active.live)
    outputs = {name: text for file in ordered for name, text in file.outputs.texts.items()}
    state = State(
        path=active.path,
        metadata=_metadata(states),
        starts=tuple(start for state in states for start in state.starts),
        live=active.live,
        document_messages=active.document_messages,
        versions=ever,
        fates=active.fates,
        copies=reduce(merge_copies, (state.copies for state in states)),
        is_whole=active.is_whole,
        loader_keys=active.loader_keys,
        records=sum(state.records for state in states),
        problems=tuple(dict.fromkeys(problem for state in states for problem in state.problems)),
        loaded_keys=listed,
    )
    # The folder of a restored copy does not say where the session took place.
    own = [
        file.origin for file, state in zip(ordered, states, strict=True) if mark_of(state.metadata) is None
    ]
    first, *_ = origins = own or [file.origin for file in ordered]
    # A copied folder keeps the hash as its name, the newer one has a slug.
    keys = sorted({origin.project_key or "" for origin in origins}, key=lambda key: (len(key), key))
    named = replace(first, project_key=keys[0] or first.project_key)
    return Transcript(named, state, OutputFiles(outputs))


def _order(file: Transcript) -> tuple[str, str, str]:
    """Return a key that sorts earlier files first, and of twins the older form, so that the newer one adds to it."""
    state = to_state(file.state)
    starts = [start for start in state.starts if type(start) is str]
    return min(starts, default=file.origin.stem.removeprefix("session-")), file.origin.stem, state.path


def _recency(state: State) -> tuple[bool, bool, str, str]:
    """Return a key by the preference of the CLI's session list: a file that can be resumed, updated last.

    A restored file to which nothing was added only repeats another.
    """
    mark, updated = mark_of(state.metadata), state.metadata.get("lastUpdated")
    has_more = mark is None or bool(_added_versions(state, mark))
    return has_conversation(state), has_more, updated if type(updated) is str else "", state.path


def _without_restored(states: Sequence[State]) -> list[State]:
    """Return the states without restored messages, if the messages' originals are there."""
    marks = [mark_of(state.metadata) for state in states]
    if not any(mark is None and state.versions for mark, state in zip(marks, states, strict=True)):
        return list(states)
    return [
        state if mark is None else replace(state, versions=_added_versions(state, mark))
        for mark, state in zip(marks, states, strict=True)
    ]


def _added_versions(state: State, mark: RestoreMark) -> dict[Key, tuple[Version, ...]]:
    later = {
        key: tuple(version for version in versions if _is_added(version[1], mark))
        for key, versions in state.versions.items()
    }
    return {key: versions for key, versions in later.items() if versions}


def _is_added(place: Place, mark: RestoreMark) -> bool:
    line, index = place
    return line > mark.messages + 1 if line else index >= mark.messages  # a document has no lines


def _metadata(states: Sequence[State]) -> Record:
    """Return the merged metadata; of conflicting values, that of the file updated last."""
    known: Record = {}
    has_original = any(mark_of(state.metadata) is None for state in states)
    for state in sorted(states, key=lambda state: str(state.metadata.get("lastUpdated") or "")):
        is_ours = has_original and mark_of(state.metadata) is not None
        known |= {
            key: value
            for key, value in state.metadata.items()
            if value is not None and not (is_ours and key in WRITTEN_KEYS)
        }
    return known


def _all_versions(states: Sequence[State]) -> tuple[dict[Key, tuple[Version, ...]], list[frozenset[Key]]]:
    """Return every version of every message, and the keys of each file's messages.

    The key of a message without an id is its content with a number; the file with most copies decides how many there are.
    """
    ever: dict[Key, tuple[Version, ...]] = {}
    names: list[frozenset[Key]] = []
    for state in states:
        seen: dict[bytes, int] = defaultdict(int)
        own = {
            key: key if type(key) is str else _content_key(versions[0][0], seen)
            for key, versions in state.versions.items()
        }
        for key, versions in state.versions.items():
            ever[own[key]] = _join_versions(ever.get(own[key], ()), versions)
        names.append(frozenset(own.values()))
    return ever, names


def _content_key(record: Any, seen: dict[bytes, int]) -> Key:
    try:
        content = msgspec.json.encode(record, order="sorted")
    except (OverflowError, RecursionError):  # an integer of more than 64 bits
        content = repr(record).encode(errors="replace")
    seen[content] += 1
    return content, seen[content]


def _join_versions(known: tuple[Version, ...], more: tuple[Version, ...]) -> tuple[Version, ...]:
    if not known and len(more) == 1:
        return more
    versions = list(known)
    for record, place in more:
        add_version(versions, record, place)
    return tuple(versions)


def count_responses(timeline: Sequence[Entry], most: int | None = None) -> tuple[int, int]:
    """Return how many responses of the model are recorded in entries, or the first of them, and how many have tokens."""
    responses: dict[str, tuple[int, bool]] = {}
    for entry, following in islice(zip_longest(timeline, timeline[1:]), most):
        if type(entry) is Message and entry.model is not None and entry.id is not None:
            is_counted = entry.usage is not None and not entry.usage.estimated
            if is_counted or _is_complete(entry, following):
                before, was_counted = responses.get(entry.id, (0, False))
                responses[entry.id] = max(before, _responses_in(entry)), was_counted or is_counted
    return sum(held for held, _ in responses.values()), sum(
        is_counted for _, is_counted in responses.values()
    )


def _is_complete(answer: Message, following: Entry | None) -> bool:
    """Return whether an answer was completed: after a cancelled or failed one comes a notice or nothing."""
    return bool(answer.parts) and type(following) is Message


def _responses_in(answer: Message) -> int:
    """Return how many responses a message holds: calls of a later response start after the earlier calls are done."""
    count, done_at = 1, None
    for call in answer.parts:
        if type(call) is ToolCall and call.at is not None and call.took_ms is not None:
            if done_at is not None and to_milliseconds(call.at - done_at) > call.took_ms:
                count += 1
            done_at = call.at if done_at is None else max(done_at, call.at)
    return count


def relate(sessions: Sequence[Session]) -> Sequence[Session]:
    """Return the sessions of one cluster in the same order, with parents and children linked."""
    orphans: dict[str | None, list[int]] = defaultdict(list)
    for place, session in enumerate(sessions):
        if session.kind == "subagent":
            orphans[parent_id_of(session.sources[0].path, session.native_id)].append(place)
    related = list(sessions)
    for place, session in enumerate(sessions):
        if session.kind == "main":
            children = {
                child: _adopt(sessions[child], session) for child in orphans.pop(session.native_id, ())
            }
            if children:
                related[place] = _link_children(session, tuple(children.values()))
            for child, adopted in children.items():
                related[child] = adopted
    return related


def _adopt(child: Session, parent: Session) -> Session:
    return replace(child, key=f"{parent.key}/{agent_id_of(child.key)}", parent=parent.key)


def _link_children(session: Session, children: Sequence[Session]) -> Session:
    ordered = sorted(children, key=lambda child: (str(child.started_at), child.key))
    named = {
        part.child for entry in session.timeline if isinstance(entry, Message) for part in entry.parts
        if isinstance(part, ToolCall) and part.child
    }  # fmt: skip
    waiting = [child for child in ordered if child.key not in named]
    timeline = (
        tuple(_link_calls(entry, waiting) for entry in session.timeline) if waiting else session.timeline
    )
    return replace(session, children=tuple(child.key for child in ordered), timeline=timeline)


def _link_calls(entry: Entry, waiting: list[Session]) -> Entry:
    """Return an entry with each call that started a subagent linked to the first one that ran meanwhile."""
    if not isinstance(entry, Message):
        return entry
    parts = tuple(
        _link_call(part, entry, waiting) if isinstance(part, ToolCall) and part.name in STARTS_AGENT else part
        for part in entry.parts
    )
    return replace(entry, parts=parts)


def _link_call(call: ToolCall, message: Message, waiting: list[Session]) -> ToolCall:
    if call.child is not None:
        return call
    for child in waiting:
        if child.started_at is None or message.at is None or call.at is None:
            continue
        if message.at <= child.started_at <= call.at:
            waiting.remove(child)
            return replace(call, child=child.key)
    return call

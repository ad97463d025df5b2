"""Predicts the deletions of Gemini CLI.

At every start, in the project of the start, it deletes sessions whose `lastUpdated` is too old, those beyond a number, and at
any age those that it would not list. All files whose names end with the same eight letters or digits are deleted together.
Evidence: `docs/formats/gemini.md`, section 4.8; `cleanupExpiredSessions` in the bundle of 0.61.0, which the tests run.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from retold.agents.gemini.discovery import (
    HASH,
    NOT_PROJECTS,
    RetentionRules,
    find_sources,
    read_retention_rules,
)
from retold.agents.gemini.raw import ENVIRONMENT_ID
from retold.agents.gemini.reader import read
from retold.agents.gemini.replay import to_state
from retold.agents.gemini.state import State, Transcript, has_conversation, is_loadable
from retold.agents.protocol import AgentHome, Ghost, Reading, Reason, Source, Threat
from retold.model.problem import Problem
from retold.reading.diagnostics import parse_time
from retold.reading.disk import folders_in, list_unlinked

_SESSION_NAME = re.compile(r"session-.*\.jsonl?", re.DOTALL)
_SHORT_ID = re.compile(r"-([a-zA-Z0-9]{8})\.jsonl?$")
_NEVER = datetime.max.replace(tzinfo=UTC)


class Candidate(msgspec.Struct, frozen=True):
    """A file that the CLI considers for deletion."""

    source: Source
    native_id: str | None
    rejected: Reason | None = None
    updated_at: datetime | None = None
    """None if the CLI takes the file for new."""


def find_threats(home: AgentHome) -> Iterator[Threat]:
    """Yield every file that the CLI will delete, with the earliest reason."""
    rules = read_retention_rules(home)
    if not rules.is_on:
        return
    for project in folders_in(home.sessions, home.disk):
        if project.name not in NOT_PROJECTS and not HASH.fullmatch(project.name):
            yield from _find_in_project(Path(project.path) / "chats", home, rules)


def _find_in_project(chats: Path, home: AgentHome, rules: RetentionRules) -> Iterator[Threat]:
    files = [entry for entry in list_unlinked(chats, home.disk) if entry.is_file(follow_symlinks=False)]
    names = [entry.path for entry in files if _SESSION_NAME.fullmatch(entry.name)]
    candidates = [_read_candidate(Source(Path(path), home)) for path in names]
    own = [threat for one in candidates if (threat := _own_threat(one, rules)) is not None]
    reasons = {
        threat.source.path: threat for threat in [*_threats_beyond_count(candidates, rules), *own][::-1]
    }
    groups: defaultdict[str, list[Candidate]] = defaultdict(list)
    for one in candidates:
        match = _SHORT_ID.search(one.source.path.name)
        groups[match[1] if match else one.source.path.name].append(one)
    for group in groups.values():
        yield from _group_threats(
            group, [reasons[path] for one in group if (path := one.source.path) in reasons]
        )


def _own_threat(one: Candidate, rules: RetentionRules) -> Threat | None:
    """Return the reason for deleting a file by itself, if there is one."""
    if one.rejected is not None:
        return Threat(one.source, one.native_id, one.rejected, None)
    if one.updated_at is None or rules.max_age is None:
        return None
    try:
        at = one.updated_at + rules.max_age
    except OverflowError:
        return None
    return Threat(one.source, one.native_id, "expired", at)


def _threats_beyond_count(candidates: Sequence[Candidate], rules: RetentionRules) -> Iterator[Threat]:
    """Yield the files beyond the largest number; the session that is started by then counts too."""
    if rules.max_count is None:
        return
    listed = [one for one in candidates if one.rejected is None]
    newest = sorted(listed, key=lambda one: one.updated_at or _NEVER, reverse=True)
    for one in newest[rules.max_count :]:
        yield Threat(one.source, one.native_id, "too-many", None)


def _group_threats(group: Sequence[Candidate], threats: Sequence[Threat]) -> Iterator[Threat]:
    """Yield the files of one short id: the first that is deleted takes the others along."""
    if not threats:
        return
    first = min(threats, key=lambda threat: threat.at or datetime.min.replace(tzinfo=UTC))
    by_path = {threat.source.path: threat for threat in threats}
    for one in group:
        own = by_path.get(one.source.path)
        if own is not None and own.at == first.at:
            yield own
        else:
            yield Threat(one.source, one.native_id, first.reason, first.at, first.source.path)


def _read_candidate(source: Source) -> Candidate:
    readings = read(source)
    if isinstance(readings, Problem):
        return Candidate(source, None, "unloadable")
    for reading in readings:
        if isinstance(reading.state, Transcript):
            return _judge_session(source, reading, to_state(reading.state.state))
    return Candidate(source, None, "unloadable")


def _judge_session(source: Source, reading: Reading, state: State) -> Candidate:
    if not is_loadable(state):
        return Candidate(source, reading.native_id, "unloadable")
    if state.metadata.get("kind") == "subagent":
        return Candidate(source, reading.native_id, "subagent")
    if not has_conversation(state):
        return Candidate(source, reading.native_id, "empty" if _is_empty(state) else "nothing-to-resume")
    return Candidate(source, reading.native_id, None, _updated_at(state, reading))


def _updated_at(state: State, reading: Reading) -> datetime | None:
    """Return the time of the last change as the CLI reads it; for lines without one, that is the current time."""
    updated: Any = state.metadata.get("lastUpdated")
    if state.document_messages is not None:
        updated = updated or state.metadata.get("startTime") or (state.starts[0] if state.starts else None)
        if not updated:
            return reading.modified_at
    return parse_time(updated)[0]


def find_ghosts(home: AgentHome) -> Iterator[Ghost]:
    """Yield the files without conversation next to files of the same session with a conversation.

    Files are read only if several share a short id.
    """
    sources_by_cluster: defaultdict[tuple[str, str], list[Source]] = defaultdict(list)
    for source in find_sources(home):
        if isinstance(source, Source) and source.path.parent.name == "chats" and source.cluster:
            sources_by_cluster[str(source.path.parent), source.cluster].append(source)
    for sources in sources_by_cluster.values():
        if len(sources) > 1:
            yield from _find_ghosts_among(sources)


def _find_ghosts_among(sources: Sequence[Source]) -> Iterator[Ghost]:
    by_id: defaultdict[object, list[tuple[Source, State]]] = defaultdict(list)
    for source in sources:
        readings = read(source)
        if isinstance(readings, Problem):
            continue
        for reading in readings:
            if isinstance(reading.state, Transcript) and reading.native_id is not None:
                by_id[reading.native_id].append((source, to_state(reading.state.state)))
    for native_id, files in by_id.items():
        real = [source.path for source, state in files if has_conversation(state)]
        for source, state in files:
            if real and _is_empty(state):
                yield Ghost(source, str(native_id), tuple(real))


def _is_empty(state: State) -> bool:
    """Return whether a file holds only the records of the CLI's start."""
    return not state.problems and all(key == ENVIRONMENT_ID for key in state.versions)

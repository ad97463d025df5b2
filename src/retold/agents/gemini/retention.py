"""What Gemini CLI is going to delete, and when.

At every start, in the folder of the project it starts in: sessions whose `lastUpdated` is too long ago, those beyond a number,
and at any age those that it would not list. All files whose names end with the same eight letters or digits go together.
Evidence: `docs/formats/gemini.md`, section 4.8; `cleanupExpiredSessions` in the bundle of 0.61.0, which the tests run.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from retold.agents.gemini.limits import Rules, rules
from retold.agents.gemini.loader import active_records, is_loadable, is_resumable
from retold.agents.gemini.places import NOT_PROJECTS
from retold.agents.gemini.raw import ENVIRONMENT_ID
from retold.agents.gemini.read import read
from retold.agents.gemini.replay import as_state
from retold.agents.gemini.sessions import Recorded
from retold.agents.gemini.state import State
from retold.agents.protocol import AgentHome, Limit, Reading, Reason, Source, Threat
from retold.model.problem import Problem
from retold.reading.diagnostics import parse_time
from retold.reading.disk import list_folder

_LISTED = re.compile(r"session-.*\.jsonl?", re.DOTALL)
_SHORT_ID = re.compile(r"-([a-zA-Z0-9]{8})\.jsonl?$")
_HASH = re.compile(r"[0-9a-f]{64}")
SPARED = "[0-9a-f]" * 64
"""Folders named by a hash: only versions that delete nothing by default work in them."""
_NEVER = datetime.max.replace(tzinfo=UTC)


class Candidate(msgspec.Struct, frozen=True):
    """A file that the CLI looks at."""

    source: Source
    native_id: str | None
    rejected: Reason | None = None
    updated_at: datetime | None = None
    """None where the CLI takes it for new."""


def limit(home: AgentHome) -> Limit:
    """Return how long the CLI keeps sessions."""
    found = rules(home)
    seconds = found.max_age.total_seconds() if found.is_on and found.max_age else None
    return Limit(seconds, "said", SPARED, found.problems)


def retention(home: AgentHome) -> Iterator[Threat]:
    """Yield every file that the CLI will delete, with the earliest reason for it."""
    told = rules(home)
    if not told.is_on:
        return
    for project in list_folder(home.sessions, home.disk):
        if isinstance(project, Problem) or not project.is_dir(follow_symlinks=False):
            continue
        if project.name not in NOT_PROJECTS and not _HASH.fullmatch(project.name):
            yield from _of_project(Path(project.path) / "chats", home, told)


def _of_project(chats: Path, home: AgentHome, told: Rules) -> Iterator[Threat]:
    found = [_candidate(Source(path, home)) for path in _files(chats, home)]
    own = [threat for one in found if (threat := _own(one, told)) is not None]
    reasons = {threat.source.path: threat for threat in [*_too_many(found, told), *own][::-1]}
    groups: defaultdict[str, list[Candidate]] = defaultdict(list)
    for one in found:
        match = _SHORT_ID.search(one.source.path.name)
        groups[match[1] if match else one.source.path.name].append(one)
    for group in groups.values():
        yield from _together(group, [reasons[path] for one in group if (path := one.source.path) in reasons])


def _files(chats: Path, home: AgentHome) -> Iterator[Path]:
    if home.disk.is_link(str(chats)):
        return
    for entry in list_folder(chats, home.disk):
        if isinstance(entry, Problem) or not entry.is_file(follow_symlinks=False):
            continue
        if _LISTED.fullmatch(entry.name):
            yield Path(entry.path)


def _own(one: Candidate, told: Rules) -> Threat | None:
    """Return why a file goes by itself, if it does."""
    if one.rejected is not None:
        return Threat(one.source, one.native_id, one.rejected, None)
    if one.updated_at is None or told.max_age is None:
        return None
    try:
        at = one.updated_at + told.max_age
    except OverflowError:
        return None
    return Threat(one.source, one.native_id, "expired", at)


def _too_many(found: Sequence[Candidate], told: Rules) -> Iterator[Threat]:
    """Yield those beyond the number that is kept; the session that is begun by then counts too."""
    if told.max_count is None:
        return
    listed = [one for one in found if one.rejected is None]
    newest = sorted(listed, key=lambda one: one.updated_at or _NEVER, reverse=True)
    for one in newest[told.max_count :]:
        yield Threat(one.source, one.native_id, "too-many", None)


def _together(group: Sequence[Candidate], threats: Sequence[Threat]) -> Iterator[Threat]:
    """Yield the files of one short id: the first that goes takes the others with it."""
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


def _candidate(source: Source) -> Candidate:
    readings = read(source)
    if isinstance(readings, Problem):
        return Candidate(source, None, "unloadable")
    for reading in readings:
        if isinstance(reading.state, Recorded):
            return _recorded(source, reading, as_state(reading.state.state))
    return Candidate(source, None, "unloadable")


def _recorded(source: Source, reading: Reading, state: State) -> Candidate:
    records = active_records(state)
    if not is_loadable(state):
        return Candidate(source, reading.native_id, "unloadable")
    if state.metadata.get("kind") == "subagent":
        return Candidate(source, reading.native_id, "subagent")
    if not any(type(record) is dict and is_resumable(record) for record in records):
        is_empty = not state.problems and all(key == ENVIRONMENT_ID for key in state.ever)
        return Candidate(source, reading.native_id, "empty" if is_empty else "nothing-to-resume")
    return Candidate(source, reading.native_id, None, _updated_at(state, reading))


def _updated_at(state: State, reading: Reading) -> datetime | None:
    """Return what the CLI takes for the last change: for lines without one, the moment at which it looks."""
    told: Any = state.metadata.get("lastUpdated")
    if state.verbatim is not None:
        told = told or state.metadata.get("startTime") or (state.starts[0] if state.starts else None)
        if not told:
            return reading.modified_at
    return parse_time(told)[0]

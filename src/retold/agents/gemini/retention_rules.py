"""What Gemini CLI is going to delete, and when.

At every start, in the folder of the project it starts in: sessions whose `lastUpdated` is too long ago, those beyond a number,
and at any age those that it would not list. All files whose names end with the same eight letters or digits go together.
Evidence: `docs/formats/gemini.md`, section 4.8; `cleanupExpiredSessions` in the bundle of 0.61.0, which the tests run.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from retold.agents.gemini.discovery import NOT_PROJECTS, find
from retold.agents.gemini.raw import ENVIRONMENT_ID
from retold.agents.gemini.reader import read
from retold.agents.gemini.replay import as_state
from retold.agents.gemini.session import Recorded
from retold.agents.gemini.state import State, active_records, is_loadable, is_resumable
from retold.agents.protocol import AgentHome, Ghost, Limit, Reading, Reason, Source, Threat
from retold.model.problem import Problem, problem
from retold.reading.diagnostics import parse_time
from retold.reading.disk import list_folder, printable, read_settings

_PERIOD = re.compile(r"([0-9]{1,18})([dhwm])")
_UNITS = {"h": 3600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400}
_AGE, _LEAST = "30d", "1d"
_LONGEST = 100 * 365 * 86_400
"""Seconds; no calendar has to reckon with more."""


class Rules(msgspec.Struct, frozen=True):
    """What the settings of a home come to."""

    is_on: bool
    """Off, nothing is deleted, whatever a file is like."""
    max_age: timedelta | None = None
    max_count: int | None = None
    problems: tuple[Problem, ...] = ()


def rules(home: AgentHome) -> Rules:
    """Return the rules of a home; the usual ones where its settings cannot be understood.

    Settings of a project or of the whole machine, which may say otherwise, are not looked for.
    """
    path = home.path / "settings.json"
    found = read_settings(path, home.disk)
    if isinstance(found, Problem):
        return Rules(is_on=True, max_age=_period(_AGE), problems=(found,))
    general = found.get("general", {})
    told = general.get("sessionRetention", {}) if type(general) is dict else None
    if type(told) is not dict:
        odd = problem("unexpected-shape", "no object", printable(path), pointer="/general/sessionRetention")
        return Rules(is_on=True, max_age=_period(_AGE), problems=(odd,))
    return _rules({"enabled": True, "maxAge": _AGE, "minRetention": _LEAST} | told)


def _rules(told: dict[str, Any]) -> Rules:
    """Return what the CLI makes of it: settings that contradict themselves turn the deleting off."""
    off = Rules(is_on=False)
    age, told_count = told["maxAge"], told.get("maxCount")
    max_age = _period(age)
    least = _period(told["minRetention"]) or _period(_LEAST)
    count = told_count if isinstance(told_count, int | float) else None
    if not told["enabled"] or (age and (max_age is None or (least is not None and max_age < least))):
        return off
    if (count is not None and count < 1) or (not age and count is None):
        return off
    return Rules(is_on=True, max_age=max_age, max_count=None if count is None else int(count))


def _period(text: object) -> timedelta | None:
    """Return a period such as `30d`; a month has 30 days."""
    match = _PERIOD.fullmatch(text) if type(text) is str else None
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    return timedelta(seconds=min(seconds, _LONGEST)) if seconds else None


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


def ghosts(home: AgentHome) -> Iterator[Ghost]:
    """Yield the files in which nothing was said, beside files of the same session in which something was.

    Only where several files share a short id is anything read.
    """
    beside: defaultdict[tuple[str, str], list[Source]] = defaultdict(list)
    for source in find(home):
        if isinstance(source, Source) and source.path.parent.name == "chats" and source.cluster:
            beside[str(source.path.parent), source.cluster].append(source)
    for sources in beside.values():
        if len(sources) > 1:
            yield from _among(sources)


def _among(sources: Sequence[Source]) -> Iterator[Ghost]:
    by_id: defaultdict[object, list[tuple[Source, State]]] = defaultdict(list)
    for source in sources:
        readings = read(source)
        if isinstance(readings, Problem):
            continue
        for reading in readings:
            if isinstance(reading.state, Recorded) and reading.native_id is not None:
                by_id[reading.native_id].append((source, as_state(reading.state.state)))
    for native_id, found in by_id.items():
        real = [source.path for source, state in found if _is_conversation(state)]
        for source, state in found:
            if real and _is_empty(state):
                yield Ghost(source, str(native_id), tuple(real))


def _is_conversation(state: State) -> bool:
    return any(type(record) is dict and is_resumable(record) for record in active_records(state))


def _is_empty(state: State) -> bool:
    """Tell whether nothing was ever said in a file: what the CLI writes itself when it starts is all there is."""
    return not state.problems and all(key == ENVIRONMENT_ID for key in state.ever)

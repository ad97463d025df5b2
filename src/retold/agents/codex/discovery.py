"""Finds the rollouts of Codex, and says what their names mean. Evidence: `docs/formats/codex.md`, section 2."""

import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from retold.agents.protocol import AgentHome, Leftover, RetentionLimit, Source
from retold.model.problem import Problem
from retold.model.session import Clue
from retold.reading.diagnostics import shift_time
from retold.reading.disk import DISK, Disk, files_in, list_folder

FOLDER = ".codex"
SESSIONS = "sessions"
ARCHIVED = "archived_sessions"
HISTORY = "history.jsonl"
INDEX = "session_index.jsonl"
ZST = ".zst"
DEPTH = 4
"""Year, month, day, and one spare level."""
_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_NAME = re.compile(
    rf"rollout-(?P<at>[\dT-]+?)-(?P<thread>{_UUID})(?:_(?P<rollout>{_UUID}))?\.(?:jsonl(?:\.zst)?|json)"
)
_MILLISECONDS_BITS = 80
_VERSION_BITS = 76
_VERSION = 7


class RolloutName(msgspec.Struct, frozen=True):
    """The meaning of a file's name: the thread, and the rollout among those of the thread."""

    thread: str
    rollout: str
    """The thread's own id, unless the file was written after a return to an earlier turn."""

    @property
    def is_first(self) -> bool:
        """Whether the file was not written after a return to an earlier turn."""
        return self.rollout == self.thread


def parse_name(path: Path) -> RolloutName | None:
    """Return the meaning of a file's name; None for another name."""
    match = _NAME.fullmatch(path.name)
    return RolloutName(match["thread"], match["rollout"] or match["thread"]) if match else None


def find_homes(env: Mapping[str, str], disk: Disk = DISK) -> Iterator[AgentHome]:
    """Yield the home; `CODEX_SESSIONS_DIR` is retold's own and replaces the folder `sessions`."""
    user = env.get("HOME") or env.get("USERPROFILE") or Path.home()
    folder = Path(env.get("CODEX_HOME") or Path(user) / FOLDER)
    yield AgentHome(folder, Path(env.get("CODEX_SESSIONS_DIR") or folder / SESSIONS), disk=disk)


def find_home(folder: Path, disk: Disk = DISK) -> AgentHome | None:
    """Return the home that a folder contains or is."""
    for candidate in (folder / FOLDER, folder):
        folders = (candidate / SESSIONS, candidate / ARCHIVED)
        if any(disk.is_folder(str(one)) for one in folders) and _is_home(candidate, disk):
            return AgentHome(candidate, candidate / SESSIONS, disk=disk)
    return None


def _is_home(folder: Path, disk: Disk) -> bool:
    if folder.name == FOLDER:
        return True
    return next(_find_rollouts(folder / SESSIONS, folder / ARCHIVED, disk), None) is not None


def find_sources(home: AgentHome) -> Iterator[Source | Problem]:
    """Yield every rollout of a home, in a steady order, and the two lists of all threads."""
    for name in (HISTORY, INDEX):
        path = home.path / name
        if home.disk.is_file(str(path)) and not home.disk.is_link(str(path)):
            yield Source(path, home)
    for found in _find_rollouts(home.sessions, home.path / ARCHIVED, home.disk):
        yield found if isinstance(found, Problem) else Source(found[0], home, found[1].thread)


def cluster_of(native_id: str) -> str:
    """Return the id of a thread, by which its rollouts are named."""
    return native_id


def _find_rollouts(
    sessions: Path, archived: Path, disk: Disk
) -> Iterator[tuple[Path, RolloutName] | Problem]:
    yield from _find_below(sessions, DEPTH, disk)
    yield from _find_below(archived, 1, disk)


def _find_below(folder: Path, depth: int, disk: Disk) -> Iterator[tuple[Path, RolloutName] | Problem]:
    entries = list(list_folder(folder, disk))
    names = {entry.name for entry in entries if not isinstance(entry, Problem)}
    for entry in entries:
        if isinstance(entry, Problem):
            yield entry
        elif entry.is_dir(follow_symlinks=False):
            if depth > 1:
                yield from _find_below(Path(entry.path), depth - 1, disk)
        elif entry.is_file(follow_symlinks=False) and entry.name.removesuffix(ZST) not in names - {
            entry.name
        }:
            name = parse_name(Path(entry.path))
            if name is not None:
                yield Path(entry.path), name


def find_clues(home: AgentHome) -> Iterator[Clue]:  # noqa: ARG001 - every rollout names its own folder
    """Yield nothing: Codex keeps no list of projects."""
    return iter(())


def find_rollout(rollout: str, source: Source) -> Path | None:
    """Return the file of a rollout in the home of another one: in the same folder, archived, or by the day in its id."""
    for folder in _likely_folders(rollout, source):
        for entry in files_in(folder, source.disk):
            name = parse_name(Path(entry.path))
            if name is not None and name.rollout == rollout:
                return Path(entry.path)
    return None


def _likely_folders(rollout: str, source: Source) -> Iterator[Path]:
    yield source.path.parent
    sessions = source.home.sessions if source.home else _sessions_above(source.path)
    if sessions is None:
        return
    yield (source.home.path if source.home else sessions.parent) / ARCHIVED
    made_at = time_of_id(rollout)
    if made_at is not None:
        # Folders are named by the user's local day.
        for days in (0, -1, 1):
            yield sessions / f"{shift_time(made_at, timedelta(days=days)):%Y{os.sep}%m{os.sep}%d}"


def _sessions_above(path: Path) -> Path | None:
    for folder in path.parents:
        if folder.name == SESSIONS:
            return folder
        if folder.name == ARCHIVED:
            return folder.parent / SESSIONS
    return None


def time_of_id(identifier: object) -> datetime | None:
    """Return the time at which an id was made, which a UUID of version 7 contains; None for another id."""
    if type(identifier) is not str or not re.fullmatch(_UUID, identifier):
        return None
    number = int(identifier.replace("-", ""), 16)
    if number >> _VERSION_BITS & 0xF != _VERSION:
        return None
    try:
        return datetime.fromtimestamp((number >> _MILLISECONDS_BITS) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def find_leftovers(home: AgentHome) -> Iterator[Leftover]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: prompts without a rollout are read as sessions, and everything else can be made from rollouts."""
    return iter(())


def read_retention_limit(home: AgentHome) -> RetentionLimit:  # noqa: ARG001 - as every agent has it
    """Return no limit: Codex CLI keeps sessions for ever."""
    return RetentionLimit()

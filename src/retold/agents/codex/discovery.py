"""Where Codex keeps its sessions, and what the name of a file says.

Evidence: `docs/formats/codex.md`, section 2.
"""

import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from retold.agents.protocol import AgentHome, Remains, Source
from retold.model.problem import Problem
from retold.model.session import Clue
from retold.reading.diagnostics import shifted
from retold.reading.disk import DISK, Disk, list_folder

FOLDER = ".codex"
SESSIONS = "sessions"
ARCHIVED = "archived_sessions"
HISTORY = "history.jsonl"
INDEX = "session_index.jsonl"
PACKED = ".zst"
DEPTH = 4
"""Year, month, day, and one to spare."""
_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_NAME = re.compile(
    rf"rollout-(?P<at>[\dT-]+?)-(?P<thread>{_UUID})(?:_(?P<rollout>{_UUID}))?\.(?:jsonl(?:\.zst)?|json)"
)
_MILLISECONDS_BITS = 80
_VERSION_BITS = 76
_VERSION = 7


class Name(msgspec.Struct, frozen=True):
    """What the name of a file says: whose it is, and which of the files of its thread."""

    thread: str
    rollout: str
    """The thread's own id, except for what was written after going back."""

    @property
    def is_first(self) -> bool:
        """Whether it was not written after going back."""
        return self.rollout == self.thread


def name_of(path: Path) -> Name | None:
    """Return what a file's name says; None where it is named otherwise."""
    match = _NAME.fullmatch(path.name)
    return Name(match["thread"], match["rollout"] or match["thread"]) if match else None


def homes(env: Mapping[str, str], disk: Disk = DISK) -> Iterator[AgentHome]:
    """Yield the home; `CODEX_SESSIONS_DIR` is ours and names the folder that stands for `sessions`."""
    user = env.get("HOME") or env.get("USERPROFILE") or Path.home()
    folder = Path(env.get("CODEX_HOME") or Path(user) / FOLDER)
    yield AgentHome(folder, Path(env.get("CODEX_SESSIONS_DIR") or folder / SESSIONS), disk=disk)


def home_in(folder: Path, disk: Disk = DISK) -> AgentHome | None:
    """Return the home that a folder holds, or is."""
    for candidate in (folder / FOLDER, folder):
        folders = (candidate / SESSIONS, candidate / ARCHIVED)
        if any(disk.is_folder(str(held)) for held in folders) and _is_home(candidate, disk):
            return AgentHome(candidate, candidate / SESSIONS, disk=disk)
    return None


def _is_home(folder: Path, disk: Disk) -> bool:
    if folder.name == FOLDER:
        return True
    return next(_rollouts(folder / SESSIONS, folder / ARCHIVED, disk), None) is not None


def find(home: AgentHome) -> Iterator[Source | Problem]:
    """Yield every rollout of a home, in a steady order, and the two lists that tell of all threads."""
    for name in (HISTORY, INDEX):
        path = home.path / name
        if home.disk.is_file(str(path)) and not home.disk.is_link(str(path)):
            yield Source(path, home)
    for found in _rollouts(home.sessions, home.path / ARCHIVED, home.disk):
        yield found if isinstance(found, Problem) else Source(found[0], home, found[1].thread)


def cluster_of(native_id: str) -> str:
    """Return what the rollouts of a thread are named by: its id."""
    return native_id


def _rollouts(sessions: Path, archived: Path, disk: Disk) -> Iterator[tuple[Path, Name] | Problem]:
    yield from _below(sessions, DEPTH, disk)
    yield from _below(archived, 1, disk)


def _below(folder: Path, depth: int, disk: Disk) -> Iterator[tuple[Path, Name] | Problem]:
    held = list(list_folder(folder, disk))
    names = {entry.name for entry in held if not isinstance(entry, Problem)}
    for entry in held:
        if isinstance(entry, Problem):
            yield entry
        elif entry.is_dir(follow_symlinks=False):
            if depth > 1:
                yield from _below(Path(entry.path), depth - 1, disk)
        elif entry.is_file(follow_symlinks=False) and entry.name.removesuffix(PACKED) not in names - {
            entry.name
        }:
            name = name_of(Path(entry.path))
            if name is not None:
                yield Path(entry.path), name


def clues(home: AgentHome) -> Iterator[Clue]:  # noqa: ARG001 - every rollout names its own folder
    """Yield nothing: no list of projects is kept."""
    return iter(())


def find_rollout(rollout: str, source: Source) -> Path | None:
    """Return the file of a rollout in the home that another lies in: beside it, archived, or by the day in its id."""
    for folder in _likely_folders(rollout, source):
        for entry in list_folder(folder, source.disk):
            if isinstance(entry, Problem) or not entry.is_file(follow_symlinks=False):
                continue
            name = name_of(Path(entry.path))
            if name is not None and name.rollout == rollout:
                return Path(entry.path)
    return None


def _likely_folders(rollout: str, source: Source) -> Iterator[Path]:
    yield source.path.parent
    sessions = source.home.sessions if source.home else _sessions_above(source.path)
    if sessions is None:
        return
    yield (source.home.path if source.home else sessions.parent) / ARCHIVED
    made_at = id_time(rollout)
    if made_at is not None:
        # Folders are named by the day where the user was.
        for days in (0, -1, 1):
            yield sessions / f"{shifted(made_at, timedelta(days=days)):%Y{os.sep}%m{os.sep}%d}"


def _sessions_above(path: Path) -> Path | None:
    for folder in path.parents:
        if folder.name == SESSIONS:
            return folder
        if folder.name == ARCHIVED:
            return folder.parent / SESSIONS
    return None


def id_time(identifier: object) -> datetime | None:
    """Return when an id was made, where it tells: it does in a UUID of version 7."""
    if type(identifier) is not str or not re.fullmatch(_UUID, identifier):
        return None
    number = int(identifier.replace("-", ""), 16)
    if number >> _VERSION_BITS & 0xF != _VERSION:
        return None
    try:
        return datetime.fromtimestamp((number >> _MILLISECONDS_BITS) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def remains(home: AgentHome) -> Iterator[Remains]:  # noqa: ARG001 - as every agent has it
    """Yield nothing: prompts whose rollout is gone are read as sessions, and all else can be made from the rollouts."""
    return iter(())

"""Finds the files of Gemini CLI, says what their paths and marks mean, and reads the limits of retention.

Evidence: `docs/formats/gemini.md`, sections 2, 4.1, 4.8 and 13.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from retold.agents.gemini.raw import Record
from retold.agents.protocol import AgentHome, Leftover, RetentionLimit, Source
from retold.model.problem import Problem, problem
from retold.model.session import Clue, View
from retold.reading.disk import (
    DISK,
    Disk,
    FileBytes,
    folders_in,
    list_folder,
    list_unlinked,
    printable_path,
    read_bytes,
    read_settings,
)
from retold.reading.json_decode import JsonValue, decode

MARK_KEY = "retold"
"""The metadata field of the mark; the CLI keeps unknown fields."""
WRITTEN_KEYS = ("directories", "memoryScratchpad", "sessionId", "projectHash", "summary")
"""Other metadata that a restore writes. If a file of the session itself has such a field, that one counts."""
_ID = re.compile(r"r\d*_(?=[0-9A-Za-z])")
_REWIND_UUID = re.compile(r"r\d*_([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})", re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64


class RestoreMark(msgspec.Struct, frozen=True, rename="camel"):
    """The mark in a file that retold restored."""

    session_id: str
    project_hash: str | None
    last_updated: str | None
    """The end of the session, as the session itself records it."""
    restored_at: str
    view: View
    messages: int
    """How many lines after the first retold wrote; the archive has their originals."""
    digest: str


def mark_of(metadata: Record) -> RestoreMark | None:
    """Return the mark in a file's metadata, None if it has none."""
    try:
        return msgspec.convert(metadata.get(MARK_KEY), RestoreMark | None)
    except (msgspec.ValidationError, RecursionError):
        return None


def native_id_of(metadata: Record) -> str | None:
    """Return the id that a session had before it was restored, also for a ghost of a restored session."""
    mark, recorded_id = mark_of(metadata), metadata.get("sessionId")
    if mark is not None:
        return mark.session_id
    return original_id(recorded_id) if type(recorded_id) is str and recorded_id else None


def original_id(session_id: str) -> str:
    """Return the id that a session had before it was restored."""
    match = _REWIND_UUID.fullmatch(session_id)
    return match[1] if match else session_id


def strip_restored_prefix(name: str) -> str:
    """Return an id, or the part of it in a file name, without the prefix of a restore."""
    return _ID.sub("", name, count=1) if _ID.match(name) else name


def make_restored_id(session_id: str, number: int) -> str:
    """Return the id of the first, second, ... restored copy of a session."""
    return f"r{number if number > 1 else ''}_{safe_id(session_id)[:_LONGEST]}"


def encode_mark(mark: RestoreMark) -> dict[str, Any]:
    """Return the metadata field of a mark."""
    return {MARK_KEY: msgspec.to_builtins(mark)}


FOLDER = ".gemini"
NOT_PROJECTS = frozenset(("bin", "background-processes"))
_NAME_TIME = re.compile(r"(\d{4})-(\d{2})-(\d{2})T(\d{2})-(\d{2})(?:-(\d{2}))?")
_ENDING = re.compile(r"\.(?:json|jsonl|md|out|txt)(?:\..*)?$", re.DOTALL)
_SESSION_NAME = re.compile(r"session-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-(.+)")
_CHECKPOINT = re.compile(r"checkpoint(?:-.*)?\.json")
_PROMPTS = re.compile(r"logs\.json(?:\..+\.bak)?")
HASH = re.compile(r"[0-9a-f]{64}")
_CLUSTER_LENGTH = 5
_SESSION_MATERIAL = re.compile(r"session-.+\.jsonl?(?:\.unreadable-\d+)?|.+\.jsonl?")


class Origin(msgspec.Struct, frozen=True):
    """The meaning of a file's path."""

    stem: str
    project_folder: str
    project_key: str | None
    parent_id: str | None
    """The session that started this subagent, by the name of the folder (0.37 and later)."""
    parent_stem: str | None
    name: str
    is_saved: bool = False
    """Whether the file lies in `checkpoints`."""

    @property
    def hash_in_path(self) -> str | None:
        """The hash of the project, if the project's folder is named by it (up to 0.28)."""
        return self.project_key if self.project_key and HASH.fullmatch(self.project_key) else None

    @property
    def time_in_name(self) -> datetime | None:
        """The time in the file name, if there is one."""
        match = _NAME_TIME.search(self.name)
        if match is None:
            return None
        year, month, day, hour, minute, second = (int(digits or 0) for digits in match.groups())
        try:
            return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            return None


def find_homes(env: Mapping[str, str], disk: Disk = DISK) -> Iterator[AgentHome]:
    """Yield the home. `GEMINI_CLI_HOME` names the home itself or, as the CLI reads it, its parent folder."""
    if chosen := env.get("GEMINI_CLI_HOME"):
        yield find_home(Path(chosen), disk) or _make_home(Path(chosen) / FOLDER, env, disk)
    else:
        yield _make_home(Path(env.get("HOME") or env.get("USERPROFILE") or Path.home()) / FOLDER, env, disk)


def _make_home(folder: Path, env: Mapping[str, str], disk: Disk) -> AgentHome:
    sessions = env.get("GEMINI_SESSIONS_DIR")
    return AgentHome(folder, Path(sessions) if sessions else folder / "tmp", disk=disk)


def find_home(folder: Path, disk: Disk = DISK) -> AgentHome | None:
    """Return the home that a folder contains or is."""
    for candidate in (folder / FOLDER, folder):
        sessions = candidate / "tmp"
        if disk.is_folder(str(sessions)) and (candidate.name == FOLDER or _has_projects(sessions, disk)):
            return AgentHome(candidate, sessions, disk=disk)
    return None


def _has_projects(folder: Path, disk: Disk) -> bool:
    names = ("chats", "logs.json", "checkpoints", ".project_root")
    folders = (entry.path for entry in list_folder(folder, disk) if not isinstance(entry, Problem))
    paths = (os.path.join(path, name) for path in folders if disk.is_folder(path) for name in names)
    return any(disk.is_folder(path) or disk.is_file(path) for path in paths)


def find_sources(home: AgentHome) -> Iterator[Source | Problem]:
    """Yield every file of a home that may hold conversations, in a steady order."""
    for project in list_folder(home.sessions, home.disk):
        if isinstance(project, Problem):
            yield project
        elif project.is_dir(follow_symlinks=False) and project.name not in NOT_PROJECTS:
            yield from _find_in_project(Path(project.path), home)


def _find_in_project(project: Path, home: AgentHome) -> Iterator[Source | Problem]:
    for entry in list_folder(project, home.disk):
        if isinstance(entry, Problem):
            yield entry
        elif entry.is_file(follow_symlinks=False):
            if _PROMPTS.fullmatch(entry.name):
                yield Source(Path(entry.path), home)
            elif _CHECKPOINT.fullmatch(entry.name):
                yield Source(Path(entry.path), home, f"checkpoint {strip_ending(entry.name)}")
        elif entry.name == "checkpoints" and entry.is_dir(follow_symlinks=False):
            yield from _find_in_folder(Path(entry.path), home)
        elif entry.name == "chats" and entry.is_dir(follow_symlinks=False):
            yield from _find_chats(Path(entry.path), home)


def _find_chats(chats: Path, home: AgentHome) -> Iterator[Source | Problem]:
    yield from _find_in_folder(chats, home)
    for entry in folders_in(chats, home.disk):
        yield from _find_in_folder(Path(entry.path), home, cluster_of(entry.name))


def safe_id(session_id: str) -> str:
    """Return a session's id as the CLI puts it into the names of folders."""
    return _UNSAFE.sub("_", session_id)


def short_id(session_id: str) -> str:
    """Return the part of a session's id that the CLI puts into file names."""
    return safe_id(session_id)[:8]


def find_clues(home: AgentHome) -> Iterator[Clue]:
    """Yield the roots in the markers and in the registry of a home."""
    for folder in (home.sessions, home.path / "history"):
        for entry in folders_in(folder, home.disk):
            root = read_project_root(entry.path, home.disk)
            if root is not None:
                yield Clue(root, "recorded", entry.name)
    yield from _find_registry_clues(home)


def read_project_root(project_folder: str, disk: Disk) -> str | None:
    """Return the root in the file `.project_root` of a project's folder (0.29 and later)."""
    marker = read_bytes(Path(project_folder) / ".project_root", disk) if project_folder else None
    if not isinstance(marker, FileBytes):
        return None
    return marker.data.decode(errors="replace").strip() or None


def find_project_hash(project_folder: str, disk: Disk) -> str | None:
    """Return the hash of a folder's project: its name (up to 0.28), or the hash of its root."""
    name = project_folder.rpartition(os.sep)[2]
    if HASH.fullmatch(name):
        return name
    root = read_project_root(project_folder, disk)
    return None if root is None else hashlib.sha256(root.encode()).hexdigest()


def _find_registry_clues(home: AgentHome) -> Iterator[Clue]:
    file = read_bytes(home.path / "projects.json", home.disk)
    decoded = decode(file.data) if isinstance(file, FileBytes) else None
    projects = (
        decoded.value.get("projects")
        if isinstance(decoded, JsonValue) and type(decoded.value) is dict
        else None
    )
    for root, name in projects.items() if type(projects) is dict else ():
        if type(name) is str:
            yield Clue(root, "registry", name)


def _find_in_folder(folder: Path, home: AgentHome, cluster: str | None = None) -> Iterator[Source | Problem]:
    for entry in list_folder(folder, home.disk):
        if isinstance(entry, Problem):
            yield entry
        elif entry.is_file(follow_symlinks=False) and _SESSION_MATERIAL.fullmatch(entry.name):
            yield Source(Path(entry.path), home, cluster or _cluster(folder, strip_ending(entry.name)))


def _cluster(folder: Path, name: str) -> str:
    """Return the start of the id at the end of a session's name; a file with another name is a cluster of its own."""
    return cluster_of(name) if _SESSION_NAME.fullmatch(name) else printable_path(str(folder / name))


def cluster_of(native_id: str) -> str:
    """Return the part of an id that the names of all files of its session contain, restored or not.

    A restored session is `r_<id>`, of which a name holds six characters, or five the second time.
    A file with a `history` has no id but its own name, which ends with the start of one.
    """
    match = _SESSION_NAME.fullmatch(native_id)
    return short_id(strip_restored_prefix(match[1] if match else native_id))[:_CLUSTER_LENGTH]


def origin_of(source: Source) -> Origin:
    """Return the meaning of a path. Only the parent of a subagent takes a look at the disk."""
    folder, _, name = str(source.path).rpartition(os.sep)
    above, _, folder_name = folder.rpartition(os.sep)
    chats, parent_id = (above, folder_name) if above.endswith("chats") else (folder, None)
    is_inside = chats.endswith(("chats", "checkpoints"))
    project = chats.rpartition(os.sep)[0] if is_inside else folder
    project_home, _, project_key = project.rpartition(os.sep)
    return Origin(
        stem=strip_ending(printable_path(name)),
        project_folder=project,
        project_key=printable_path(project_key)
        if is_inside or (project_home.endswith("tmp") and name.startswith(("logs", "checkpoint")))
        else None,
        parent_id=printable_path(parent_id) if parent_id else None,
        parent_stem=_find_parent_stem(Path(chats), parent_id, source.disk) if parent_id else None,
        name=name,
        is_saved=folder_name == "checkpoints",
    )


def strip_ending(name: str) -> str:
    """Return a file's name without its ending and anything behind the ending."""
    return _ENDING.sub("", name) or name


def _find_parent_stem(chats: Path, parent_id: str, disk: Disk) -> str | None:
    short = short_id(parent_id)
    names = (entry.name for entry in list_folder(chats, disk) if not isinstance(entry, Problem))
    stems = sorted(
        strip_ending(name) for name in names if name.startswith("session-") and f"-{short}.json" in name
    )
    return stems[0] if stems else None


UNREAD_FOLDERS = ("antigravity", "antigravity-cli")
"""Folders of Antigravity, which keeps its own conversations in the same home."""
_OUTPUTS_PREFIX = "session-"
_LONGEST_ENDING = 9
"""A dash, and the part of a session's id in a file name."""


def find_leftovers(home: AgentHome) -> Iterator[Leftover]:
    """Yield tool outputs whose session is missing, and folders of other programs."""
    for name in UNREAD_FOLDERS:
        if home.disk.is_folder(str(home.path / name)) and list_unlinked(home.path / name, home.disk):
            yield Leftover(home.path / name, "unread")
    for project in list_unlinked(home.sessions, home.disk):
        if project.is_dir(follow_symlinks=False) and project.name not in NOT_PROJECTS:
            yield from _find_lost_outputs(Path(project.path), home.disk)


def _find_lost_outputs(project: Path, disk: Disk) -> Iterator[Leftover]:
    folders = [
        one for one in list_unlinked(project / "tool-outputs", disk) if one.name.startswith(_OUTPUTS_PREFIX)
    ]
    if not folders:
        return
    names = {file.name for file in list_unlinked(project / "chats", disk)}
    stems = {name.partition(".json")[0] for name in names if ".json" in name}
    endings = {stem[-length:] for stem in stems for length in range(1, _LONGEST_ENDING + 1)}
    for one in folders:
        native_id = one.name.removeprefix(_OUTPUTS_PREFIX)
        is_owned = native_id in names or f"-{short_id(native_id)}" in endings
        if one.is_dir(follow_symlinks=False) and not is_owned:
            count = len(list_unlinked(Path(one.path), disk))
            if count:
                yield Leftover(Path(one.path), "outputs", native_id, count)


_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def session_group_key(origin: Origin, native_id: str, project: object, kind: object, first: str) -> str:
    """Return a key of project and session id; an id that is no UUID may name many sessions, so `first`, the first message's id, is added."""
    key = f"session:{project or origin.project_key}:{native_id}"
    if origin.parent_id is not None:
        return f"{key}:of:{original_id(origin.parent_id)}"
    if kind == "subagent":
        return f"{key}:subagent:{origin.stem}"
    return key if _UUID.fullmatch(native_id) else f"{key}:{first}"


def parent_id_of(path: str, native_id: str | None) -> str | None:
    """Return the id of a subagent's parent: the name of its folder, or its own id if both share it."""
    folder, name = re.split(r"[/\\]", path)[-2:]
    return native_id if folder == "chats" and name.startswith("session-") else original_id(folder)


def agent_id_of(key: str) -> str:
    """Return the part of a key that names a subagent within its parent."""
    return key.rpartition("/")[2].removeprefix("gemini:")


_PERIOD = re.compile(r"([0-9]{1,18})([dhwm])")
_UNITS = {"h": 3600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400}
_AGE, _LEAST = "30d", "1d"
_LONGEST_PERIOD = 100 * 365 * 86_400
"""Seconds. Calendars can add this much."""


class RetentionRules(msgspec.Struct, frozen=True):
    """The retention settings of a home."""

    is_on: bool
    """Whether the CLI deletes anything at all."""
    max_age: timedelta | None = None
    max_count: int | None = None
    problems: tuple[Problem, ...] = ()


def read_retention_rules(home: AgentHome) -> RetentionRules:
    """Return the rules of a home, or the defaults if its settings cannot be understood.

    Settings of a project or of the whole machine may differ; they are not read.
    """
    path = home.path / "settings.json"
    settings = read_settings(path, home.disk)
    if isinstance(settings, Problem):
        return RetentionRules(is_on=True, max_age=_parse_period(_AGE), problems=(settings,))
    general = settings.get("general", {})
    retention = general.get("sessionRetention", {}) if type(general) is dict else None
    if type(retention) is not dict:
        odd = problem(
            "unexpected-shape", "no object", printable_path(path), pointer="/general/sessionRetention"
        )
        return RetentionRules(is_on=True, max_age=_parse_period(_AGE), problems=(odd,))
    return _make_rules({"enabled": True, "maxAge": _AGE, "minRetention": _LEAST} | retention)


def _make_rules(settings: dict[str, Any]) -> RetentionRules:
    """Return the CLI's reading of the settings: contradictions turn deletion off."""
    off = RetentionRules(is_on=False)
    age, most = settings["maxAge"], settings.get("maxCount")
    max_age = _parse_period(age)
    least = _parse_period(settings["minRetention"]) or _parse_period(_LEAST)
    count = most if isinstance(most, int | float) else None
    if not settings["enabled"] or (age and (max_age is None or (least is not None and max_age < least))):
        return off
    if (count is not None and count < 1) or (not age and count is None):
        return off
    return RetentionRules(is_on=True, max_age=max_age, max_count=None if count is None else int(count))


def _parse_period(text: object) -> timedelta | None:
    """Return a period such as `30d`; a month has 30 days."""
    match = _PERIOD.fullmatch(text) if type(text) is str else None
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    return timedelta(seconds=min(seconds, _LONGEST_PERIOD)) if seconds else None


EXEMPT_FOLDERS = "[0-9a-f]" * 64
"""Folders named by a hash: only versions that delete nothing by default use them."""


def read_retention_limit(home: AgentHome) -> RetentionLimit:
    """Return how long the CLI keeps sessions."""
    rules = read_retention_rules(home)
    seconds = rules.max_age.total_seconds() if rules.is_on and rules.max_age else None
    return RetentionLimit(seconds, "said", EXEMPT_FOLDERS, rules.problems)

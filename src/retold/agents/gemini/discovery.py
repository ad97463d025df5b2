"""Where Gemini CLI keeps its sessions, and what a path says about a file.

Evidence: `docs/formats/gemini.md`, sections 2, 4.1 and 13.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from retold.agents.gemini.raw import Record
from retold.agents.protocol import AgentHome, Remains, Source
from retold.model.problem import Problem
from retold.model.session import Clue, View
from retold.reading.disk import DISK, Disk, DiskEntry, FileBytes, list_folder, printable, read_bytes
from retold.reading.json_decode import Decoded, decode

KEY = "retold"
"""The field of the metadata in which the mark stands; the CLI keeps what it does not know."""
WRITTEN = ("directories", "memoryScratchpad", "sessionId", "projectHash", "summary")
"""What else we write about a session; what its own files say of it counts."""
_ID = re.compile(r"r\d*_(?=[0-9A-Za-z])")
_REWIND_UUID = re.compile(r"r\d*_([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})", re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64


class Mark(msgspec.Struct, frozen=True, rename="camel"):
    """What a written file was made of."""

    session_id: str
    project_hash: str | None
    last_updated: str | None
    """What the session itself says of its end."""
    restored_at: str
    view: View
    messages: int
    """How many lines behind the first are ours: what stands there, the archive has as it was said."""
    digest: str


def mark_of(metadata: Record) -> Mark | None:
    """Return the mark in a file's metadata."""
    try:
        return msgspec.convert(metadata.get(KEY), Mark | None)
    except (msgspec.ValidationError, RecursionError):
        return None


def native_id(metadata: Record) -> str | None:
    """Return the id that a session had before it was written back, if it was; that of a ghost of it as well."""
    mark, told = mark_of(metadata), metadata.get("sessionId")
    if mark is not None:
        return mark.session_id
    return original_id(told) if type(told) is str and told else None


def original_id(session_id: str) -> str:
    """Return the id that a session had before it was written back."""
    match = _REWIND_UUID.fullmatch(session_id)
    return match[1] if match else session_id


def without_prefix(name: str) -> str:
    """Return an id, or the part of it in a file's name, as it was before it was written back."""
    return _ID.sub("", name, count=1) if _ID.match(name) else name


def new_id(session_id: str, number: int) -> str:
    """Return the id under which a session is written back for the first time, the second, ..."""
    return f"r{number if number > 1 else ''}_{_UNSAFE.sub('_', session_id)[:_LONGEST]}"


def as_metadata(mark: Mark) -> dict[str, Any]:
    """Return the mark as it is written."""
    return {KEY: msgspec.to_builtins(mark)}


FOLDER = ".gemini"
NOT_PROJECTS = frozenset(("bin", "background-processes"))
_NAME_TIME = re.compile(r"(\d{4})-(\d{2})-(\d{2})T(\d{2})-(\d{2})(?:-(\d{2}))?")
_ENDING = re.compile(r"\.(?:json|jsonl|md|out|txt)(?:\..*)?$", re.DOTALL)
_SESSION_NAME = re.compile(r"session-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-(.+)")
_CHECKPOINT = re.compile(r"checkpoint(?:-.*)?\.json")
_PROMPTS = re.compile(r"logs\.json(?:\..+\.bak)?")
_HASH = re.compile(r"[0-9a-f]{64}")
_CLUSTERED = 5
_SESSION_MATERIAL = re.compile(r"session-.+\.jsonl?(?:\.unreadable-\d+)?|.+\.jsonl?")


class Origin(msgspec.Struct, frozen=True):
    """What a file's path says about it."""

    stem: str
    project_folder: str
    project_key: str | None
    parent_id: str | None
    """The session whose subagent this is, by the folder it lies in (0.37 and later)."""
    parent_stem: str | None
    name: str
    is_saved: bool = False
    """Whether it lies in `checkpoints`."""

    @property
    def named_hash(self) -> str | None:
        """The hash of the project that the name of its folder is (up to 0.28)."""
        return self.project_key if self.project_key and _HASH.fullmatch(self.project_key) else None

    @property
    def named_at(self) -> datetime | None:
        """The time in the file's name, if there is one."""
        match = _NAME_TIME.search(self.name)
        if match is None:
            return None
        year, month, day, hour, minute, second = (int(digits or 0) for digits in match.groups())
        try:
            return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            return None


def homes(env: Mapping[str, str], disk: Disk = DISK) -> Iterator[AgentHome]:
    """Yield the home: `GEMINI_CLI_HOME` may name it or, as the CLI means it, the folder that it lies in."""
    if chosen := env.get("GEMINI_CLI_HOME"):
        yield home_in(Path(chosen), disk) or _home(Path(chosen) / FOLDER, env, disk)
    else:
        yield _home(Path(env.get("HOME") or env.get("USERPROFILE") or Path.home()) / FOLDER, env, disk)


def _home(folder: Path, env: Mapping[str, str], disk: Disk) -> AgentHome:
    sessions = env.get("GEMINI_SESSIONS_DIR")
    return AgentHome(folder, Path(sessions) if sessions else folder / "tmp", disk=disk)


def home_in(folder: Path, disk: Disk = DISK) -> AgentHome | None:
    """Return the home that a folder holds, or is."""
    for candidate in (folder / FOLDER, folder):
        sessions = candidate / "tmp"
        if disk.is_folder(str(sessions)) and (candidate.name == FOLDER or _has_projects(sessions, disk)):
            return AgentHome(candidate, sessions, disk=disk)
    return None


def _has_projects(folder: Path, disk: Disk) -> bool:
    names = ("chats", "logs.json", "checkpoints", ".project_root")
    found = (entry.path for entry in list_folder(folder, disk) if not isinstance(entry, Problem))
    held = (os.path.join(path, name) for path in found if disk.is_folder(path) for name in names)
    return any(disk.is_folder(path) or disk.is_file(path) for path in held)


def find(home: AgentHome) -> Iterator[Source | Problem]:
    """Yield every file of a home that may hold conversations, in a steady order."""
    for project in list_folder(home.sessions, home.disk):
        if isinstance(project, Problem):
            yield project
        elif project.is_dir(follow_symlinks=False) and project.name not in NOT_PROJECTS:
            yield from _sources(Path(project.path), home)


def _sources(project: Path, home: AgentHome) -> Iterator[Source | Problem]:
    for entry in list_folder(project, home.disk):
        if isinstance(entry, Problem):
            yield entry
        elif entry.is_file(follow_symlinks=False):
            if _PROMPTS.fullmatch(entry.name):
                yield Source(Path(entry.path), home)
            elif _CHECKPOINT.fullmatch(entry.name):
                yield Source(Path(entry.path), home, f"checkpoint {stem(entry.name)}")
        elif entry.name == "checkpoints" and entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path), home)
        elif entry.name == "chats" and entry.is_dir(follow_symlinks=False):
            yield from _chats(Path(entry.path), home)


def _chats(chats: Path, home: AgentHome) -> Iterator[Source | Problem]:
    yield from _files(chats, home)
    for entry in list_folder(chats, home.disk):
        if not isinstance(entry, Problem) and entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path), home, cluster_of(entry.name))


def short_id(session_id: str) -> str:
    """Return what the CLI puts of a session's id into file names."""
    return _UNSAFE.sub("_", session_id)[:8]


def clues(home: AgentHome) -> Iterator[Clue]:
    """Yield the roots that the markers and the registry of a home name."""
    for folder in (home.sessions, home.path / "history"):
        for entry in list_folder(folder, home.disk):
            if not isinstance(entry, Problem) and entry.is_dir(follow_symlinks=False):
                root = marked_root(entry.path, home.disk)
                if root is not None:
                    yield Clue(root, "recorded", entry.name)
    yield from _registered(home)


def marked_root(project_folder: str, disk: Disk) -> str | None:
    """Return the root that `.project_root` in a project's folder names (0.29 and later)."""
    marker = read_bytes(Path(project_folder) / ".project_root", disk) if project_folder else None
    if not isinstance(marker, FileBytes):
        return None
    return marker.data.decode(errors="replace").strip() or None


def project_hash(project_folder: str, disk: Disk) -> str | None:
    """Return the hash of the project that a folder belongs to: its name (up to 0.28), or that of the marked root."""
    name = project_folder.rpartition(os.sep)[2]
    if _HASH.fullmatch(name):
        return name
    root = marked_root(project_folder, disk)
    return None if root is None else hashlib.sha256(root.encode()).hexdigest()


def _registered(home: AgentHome) -> Iterator[Clue]:
    file = read_bytes(home.path / "projects.json", home.disk)
    decoded = decode(file.data) if isinstance(file, FileBytes) else None
    projects = (
        decoded.value.get("projects")
        if isinstance(decoded, Decoded) and type(decoded.value) is dict
        else None
    )
    for root, name in projects.items() if type(projects) is dict else ():
        if type(name) is str:
            yield Clue(root, "registry", name)


def _files(folder: Path, home: AgentHome, cluster: str | None = None) -> Iterator[Source | Problem]:
    for entry in list_folder(folder, home.disk):
        if isinstance(entry, Problem):
            yield entry
        elif entry.is_file(follow_symlinks=False) and _SESSION_MATERIAL.fullmatch(entry.name):
            yield Source(Path(entry.path), home, cluster or _cluster(folder, stem(entry.name)))


def _cluster(folder: Path, name: str) -> str:
    """Return the begin of the id that ends a session's name; what is named otherwise stands alone in its folder."""
    return cluster_of(name) if _SESSION_NAME.fullmatch(name) else printable(str(folder / name))


def cluster_of(native_id: str) -> str:
    """Return as much of an id as stands in the name of every file of its session, written back or not.

    A session that was written back is `r_<id>`, of which a name holds six characters, or five for the second time.
    A file with a `history` has no id but its own name, which ends with the begin of one.
    """
    match = _SESSION_NAME.fullmatch(native_id)
    return short_id(without_prefix(match[1] if match else native_id))[:_CLUSTERED]


def origin(source: Source) -> Origin:
    """Return what the path says: names only, but for the look at which file a subagent's parent is."""
    folder, _, name = str(source.path).rpartition(os.sep)
    above, _, folder_name = folder.rpartition(os.sep)
    chats, parent_id = (above, folder_name) if above.endswith("chats") else (folder, None)
    is_inside = chats.endswith(("chats", "checkpoints"))
    project = chats.rpartition(os.sep)[0] if is_inside else folder
    project_home, _, project_key = project.rpartition(os.sep)
    return Origin(
        stem=stem(printable(name)),
        project_folder=project,
        project_key=printable(project_key)
        if is_inside or (project_home.endswith("tmp") and name.startswith(("logs", "checkpoint")))
        else None,
        parent_id=printable(parent_id) if parent_id else None,
        parent_stem=_parent_stem(Path(chats), parent_id, source.disk) if parent_id else None,
        name=name,
        is_saved=folder_name == "checkpoints",
    )


def stem(name: str) -> str:
    """Return a file's name without its ending, whatever was appended behind that."""
    return _ENDING.sub("", name) or name


def _parent_stem(chats: Path, parent_id: str, disk: Disk) -> str | None:
    short = short_id(parent_id)
    names = (entry.name for entry in list_folder(chats, disk) if not isinstance(entry, Problem))
    stems = sorted(stem(name) for name in names if name.startswith("session-") and f"-{short}.json" in name)
    return stems[0] if stems else None


UNREAD = ("antigravity", "antigravity-cli")
"""Folders of Antigravity, which keeps conversations of its own in the same home."""
_OWNED = "session-"
_LONGEST_ENDING = 9
"""A dash, and what a file's name has of the id of its session."""


def remains(home: AgentHome) -> Iterator[Remains]:
    """Yield outputs whose session is not there, and the folders of others."""
    for name in UNREAD:
        if home.disk.is_folder(str(home.path / name)) and _found(home.path / name, home.disk):
            yield Remains(home.path / name, "unread")
    for project in _found(home.sessions, home.disk):
        if project.is_dir(follow_symlinks=False) and project.name not in NOT_PROJECTS:
            yield from _outputs(Path(project.path), home.disk)


def _outputs(project: Path, disk: Disk) -> Iterator[Remains]:
    kept = [one for one in _found(project / "tool-outputs", disk) if one.name.startswith(_OWNED)]
    if not kept:
        return
    names = {file.name for file in _found(project / "chats", disk)}
    stems = {name.partition(".json")[0] for name in names if ".json" in name}
    endings = {stem[-length:] for stem in stems for length in range(1, _LONGEST_ENDING + 1)}
    for one in kept:
        native_id = one.name.removeprefix(_OWNED)
        is_owned = native_id in names or f"-{short_id(native_id)}" in endings
        if one.is_dir(follow_symlinks=False) and not is_owned:
            count = len(_found(Path(one.path), disk))
            if count:
                yield Remains(Path(one.path), "outputs", native_id, count)


def _found(folder: Path, disk: Disk) -> list[DiskEntry]:
    if disk.is_link(str(folder)):
        return []
    return [entry for entry in list_folder(folder, disk) if not isinstance(entry, Problem)]


_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


def session_group(place: Origin, native_id: str, project: object, kind: object, first: str) -> str:
    """Return project and session id; `first` tells sessions apart whose ids are no UUIDs and may name many."""
    key = f"session:{project or place.project_key}:{native_id}"
    if place.parent_id is not None:
        return f"{key}:of:{original_id(place.parent_id)}"
    if kind == "subagent":
        return f"{key}:subagent:{place.stem}"
    return key if _UUID.fullmatch(native_id) else f"{key}:{first}"


def parent_id(path: str, native_id: str | None) -> str | None:
    """Return the id of the session that started a subagent: its folder's name, or its own id where that is shared."""
    folder, name = re.split(r"[/\\]", path)[-2:]
    return native_id if folder == "chats" and name.startswith("session-") else original_id(folder)


def agent_id(key: str) -> str:
    """Return what tells a subagent from others of its parent."""
    return key.rpartition("/")[2].removeprefix("gemini:")

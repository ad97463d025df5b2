"""Where Claude Code keeps its transcripts, and what a path says about a file.

Evidence: `docs/formats/claude.md`, sections 1 and 2.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from retold.agents.protocol import AgentHome, Remains, Source
from retold.model.problem import Problem
from retold.model.session import Clue
from retold.reading.disk import DISK, Disk, DiskEntry, FileBytes, list_folder, printable, read_bytes
from retold.reading.jsonl import decode_lines

FOLDER = ".claude"
_AGENT = "agent-"
_ENDING = ".jsonl"
_SUBAGENTS = "subagents"
_DEPTH = 4
"""How deep subagents lie in their session's folder: those of workflows in folders of their own."""
UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


LONGEST = 200
"""How many characters of a project's path the name of its folder holds."""
_OTHER = re.compile("[^A-Za-z0-9]")


class Origin(msgspec.Struct, frozen=True):
    """What a file's path says about it."""

    stem: str
    project_key: str | None
    """The name of the project's folder: its path, with everything but letters and digits made `-`."""
    agent_id: str | None
    parent_id: str | None
    """The session in whose folder a subagent's file lies."""
    session_folder: str
    """Where a session keeps what does not stand in its transcript."""


def homes(env: Mapping[str, str], disk: Disk = DISK) -> Iterator[AgentHome]:
    """Yield the homes: `CLAUDE_CONFIG_DIR` may name several; newer versions also look below `.config`."""
    projects = env.get("CLAUDE_PROJECTS_DIR")
    chosen = [folder for folder in (env.get("CLAUDE_CONFIG_DIR") or "").split(",") if folder.strip()]
    user = Path(env.get("HOME") or env.get("USERPROFILE") or Path.home())
    folders = [Path(folder.strip()) for folder in chosen] or [
        user / FOLDER,
        Path(env.get("XDG_CONFIG_HOME") or user / ".config") / "claude",
    ]
    for folder in folders[:1] if projects else folders:
        yield AgentHome(folder, Path(projects) if projects else folder / "projects", disk=disk)


def home_in(folder: Path, disk: Disk = DISK) -> AgentHome | None:
    """Return the home that a folder holds, or is."""
    for candidate in (folder / FOLDER, folder / ".config" / "claude", folder):
        projects = candidate / "projects"
        if disk.is_folder(str(projects)) and (candidate.name == FOLDER or _has_transcripts(projects, disk)):
            return AgentHome(candidate, projects, disk=disk)
    return None


def _has_transcripts(projects: Path, disk: Disk) -> bool:
    found = (entry for entry in list_folder(projects, disk) if not isinstance(entry, Problem))
    folders = (entry for entry in found if entry.is_dir(follow_symlinks=False))
    return any(
        not isinstance(file, Problem) and UUID.fullmatch(file.name.removesuffix(_ENDING))
        for folder in folders
        for file in list_folder(Path(folder.path), disk)
    )


def clues(home: AgentHome) -> Iterator[Clue]:  # noqa: ARG001 - every transcript names its folder itself
    """Yield nothing: the name of a project's folder does not tell where it lies."""
    return iter(())


def find(home: AgentHome) -> Iterator[Source | Problem]:
    """Yield every transcript of a home, in a steady order."""
    for project in list_folder(home.sessions, home.disk):
        if isinstance(project, Problem):
            yield project
        elif project.is_dir(follow_symlinks=False):
            yield from _transcripts(Path(project.path), home)


def _transcripts(project: Path, home: AgentHome) -> Iterator[Source | Problem]:
    for entry in list_folder(project, home.disk):
        if isinstance(entry, Problem):
            yield entry
        elif entry.is_dir(follow_symlinks=False):
            folder = Path(entry.path) / _SUBAGENTS
            yield from () if home.disk.is_link(str(folder)) else _subagents(folder, home, entry.name)
        elif entry.name.endswith(_ENDING) and entry.is_file(follow_symlinks=False):
            yield Source(Path(entry.path), home, _cluster(entry.path, _stem(entry.name)))


def _cluster(path: str, name: str) -> str:
    """Return the id that a transcript, or that of a subagent, is named by; what is named otherwise stands alone."""
    is_named = is_session_id(name) or name.startswith(_AGENT)
    return cluster_of(name) if is_named else printable(path)


def _subagents(folder: Path, home: AgentHome, session: str, depth: int = 0) -> Iterator[Source | Problem]:
    """Yield the subagents of a session; journals beside them tell only when they started and ended."""
    for entry in list_folder(folder, home.disk):
        if isinstance(entry, Problem):
            yield entry
        elif entry.is_dir(follow_symlinks=False) and depth < _DEPTH:
            yield from _subagents(Path(entry.path), home, session, depth + 1)
        elif entry.name.startswith(_AGENT) and entry.name.endswith(_ENDING):
            yield Source(Path(entry.path), home, printable(session))


def cluster_of(native_id: str) -> str:
    """Return what the transcript of a session and the folder of its subagents are named by: its id."""
    return printable(native_id)


def project_folder(root: str) -> str | None:
    """Return the name of the folder in which Claude Code keeps the sessions of a project.

    None for a path that is too long: a hash stands behind its beginning, and which one is not known for all versions.
    """
    # JavaScript replaces each UTF-16 unit: two of a character outside the basic plane.
    name = _OTHER.sub(lambda found: "-" * (len(found[0].encode("utf-16-le", "surrogatepass")) // 2), root)
    return name if len(name) <= LONGEST else None


def origin(path: Path) -> Origin:
    """Return what the path says, by names only."""
    folder, _, file = str(path).rpartition(os.sep)
    name, folders = _stem(file), folder.split(os.sep)
    agent_id = printable(name.removeprefix(_AGENT)) if name.startswith(_AGENT) else None
    near = folders[-1 - _DEPTH :][::-1]
    if agent_id is not None and _SUBAGENTS in near:
        above = folders[: -1 - near.index(_SUBAGENTS)]
        session = os.sep.join(above)
        return Origin(printable(name), _project_key(above[:-1]), agent_id, printable(above[-1]), session)
    return Origin(printable(name), _project_key(folders), agent_id, None, os.path.join(folder, name))


def _stem(name: str) -> str:
    return name.removesuffix(_ENDING) or name


def _project_key(folders: Sequence[str]) -> str | None:
    """Return the name of the project's folder, of the folders above a session."""
    return printable(folders[-1]) if len(folders) > 1 and folders[-2] == "projects" else None


def is_session_id(name: str) -> bool:
    """Tell whether a file's name is the id of its session."""
    return UUID.fullmatch(name) is not None


UNREAD = ("file-history", "plans", "tasks", "todos")
"""Folders with things of sessions that are in no transcript."""


def remains(home: AgentHome) -> Iterator[Remains]:
    """Yield prompts and outputs whose transcript is not there, and what is not read yet."""
    for name in UNREAD:
        if _found(home.path / name, home.disk):
            yield Remains(home.path / name, "unread")
    there = {source.cluster for source in find(home) if isinstance(source, Source)}
    for native_id, count in _typed(home).items():
        if native_id not in there:
            yield Remains(home.path / "history.jsonl", "prompts", native_id, count)
    for project in _found(home.sessions, home.disk):
        if project.is_dir(follow_symlinks=False):
            yield from _outputs(Path(project.path), home.disk, there)


def _typed(home: AgentHome) -> Counter[str]:
    """Return how many prompts of each session the log has; older versions did not write down which it was."""
    file = read_bytes(home.path / "history.jsonl", home.disk)
    typed: Counter[str] = Counter()
    for line in decode_lines(file.data, str(file.path)) if isinstance(file, FileBytes) else ():
        if not isinstance(line, Problem) and type(line.value) is dict:
            native_id = line.value.get("sessionId")
            if type(native_id) is str and UUID.fullmatch(native_id):
                typed[native_id] += 1
    return typed


def _outputs(project: Path, disk: Disk, there: set[str | None]) -> Iterator[Remains]:
    for session in _found(project, disk):
        is_folder = session.is_dir(follow_symlinks=False) and UUID.fullmatch(session.name)
        if is_folder and session.name not in there:
            kept = _found(Path(session.path) / "tool-results", disk)
            if kept:
                yield Remains(Path(session.path), "outputs", session.name, len(kept))


def _found(folder: Path, disk: Disk) -> list[DiskEntry]:
    if disk.is_link(str(folder)):
        return []
    return [entry for entry in list_folder(folder, disk) if not isinstance(entry, Problem)]

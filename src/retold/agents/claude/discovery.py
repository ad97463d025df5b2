"""Finds the transcripts of Claude Code, and says what their paths mean. Evidence: `docs/formats/claude.md`, sections 1 and 2."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from retold.agents.protocol import AgentHome, Leftover, RetentionLimit, Source
from retold.model.problem import Problem, problem
from retold.model.session import Clue
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
from retold.reading.jsonl import decode_lines

FOLDER = ".claude"
_AGENT_PREFIX = "agent-"
_ENDING = ".jsonl"
_SUBAGENTS = "subagents"
_DEPTH = 4
"""How deep the files of subagents lie in their session's folder: those of workflows have folders of their own."""
UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
LONGEST_NAME = 200
"""The longest name of a project's folder."""
_NOT_ALPHANUMERIC = re.compile("[^A-Za-z0-9]")


class Origin(msgspec.Struct, frozen=True):
    """The meaning of a file's path."""

    stem: str
    project_key: str | None
    """The name of the project's folder: its path with `-` for everything but letters and digits."""
    agent_id: str | None
    parent_id: str | None
    """The session in whose folder a subagent's file lies."""
    session_folder: str
    """The folder of a session's other files."""


def find_homes(env: Mapping[str, str], disk: Disk = DISK) -> Iterator[AgentHome]:
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


def find_home(folder: Path, disk: Disk = DISK) -> AgentHome | None:
    """Return the home that a folder contains or is."""
    for candidate in (folder / FOLDER, folder / ".config" / "claude", folder):
        projects = candidate / "projects"
        if disk.is_folder(str(projects)) and (candidate.name == FOLDER or _has_transcripts(projects, disk)):
            return AgentHome(candidate, projects, disk=disk)
    return None


def _has_transcripts(projects: Path, disk: Disk) -> bool:
    return any(
        not isinstance(file, Problem) and UUID.fullmatch(file.name.removesuffix(_ENDING))
        for folder in folders_in(projects, disk)
        for file in list_folder(Path(folder.path), disk)
    )


def find_clues(home: AgentHome) -> Iterator[Clue]:  # noqa: ARG001 - every transcript names its folder itself
    """Yield nothing: the name of a project's folder does not give its root."""
    return iter(())


def find_sources(home: AgentHome) -> Iterator[Source | Problem]:
    """Yield every transcript of a home, in a steady order."""
    for project in list_folder(home.sessions, home.disk):
        if isinstance(project, Problem):
            yield project
        elif project.is_dir(follow_symlinks=False):
            yield from _find_transcripts(Path(project.path), home)


def _find_transcripts(project: Path, home: AgentHome) -> Iterator[Source | Problem]:
    for entry in list_folder(project, home.disk):
        if isinstance(entry, Problem):
            yield entry
        elif entry.is_dir(follow_symlinks=False):
            folder = Path(entry.path) / _SUBAGENTS
            yield from () if home.disk.is_link(str(folder)) else _find_subagents(folder, home, entry.name)
        elif entry.name.endswith(_ENDING) and entry.is_file(follow_symlinks=False):
            yield Source(Path(entry.path), home, _cluster(entry.path, _without_ending(entry.name)))


def _cluster(path: str, name: str) -> str:
    """Return the id in the name of a transcript or of a subagent's; a file with another name is a cluster of its own."""
    is_named = is_session_id(name) or name.startswith(_AGENT_PREFIX)
    return cluster_of(name) if is_named else printable_path(path)


def _find_subagents(
    folder: Path, home: AgentHome, session: str, depth: int = 0
) -> Iterator[Source | Problem]:
    """Yield the subagents of a session; journals beside them only record their start and end."""
    for entry in list_folder(folder, home.disk):
        if isinstance(entry, Problem):
            yield entry
        elif entry.is_dir(follow_symlinks=False) and depth < _DEPTH:
            yield from _find_subagents(Path(entry.path), home, session, depth + 1)
        elif entry.name.startswith(_AGENT_PREFIX) and entry.name.endswith(_ENDING):
            yield Source(Path(entry.path), home, printable_path(session))


def cluster_of(native_id: str) -> str:
    """Return the id, by which the transcript of a session and the folder of its subagents are named."""
    return printable_path(native_id)


def project_folder_name(root: str) -> str | None:
    """Return the name of the folder in which Claude Code keeps the sessions of a project.

    None for a path that is too long: its name ends with a hash, which is not known for all versions.
    """
    # JavaScript replaces each UTF-16 unit: two for a character outside the basic plane.
    name = _NOT_ALPHANUMERIC.sub(
        lambda found: "-" * (len(found[0].encode("utf-16-le", "surrogatepass")) // 2), root
    )
    return name if len(name) <= LONGEST_NAME else None


def origin_of(path: Path) -> Origin:
    """Return the meaning of a path, by names only."""
    folder, _, file = str(path).rpartition(os.sep)
    name, folders = _without_ending(file), folder.split(os.sep)
    agent_id = printable_path(name.removeprefix(_AGENT_PREFIX)) if name.startswith(_AGENT_PREFIX) else None
    near = folders[-1 - _DEPTH :][::-1]
    if agent_id is not None and _SUBAGENTS in near:
        above = folders[: -1 - near.index(_SUBAGENTS)]
        session = os.sep.join(above)
        return Origin(
            printable_path(name), _project_key(above[:-1]), agent_id, printable_path(above[-1]), session
        )
    return Origin(printable_path(name), _project_key(folders), agent_id, None, os.path.join(folder, name))


def _without_ending(name: str) -> str:
    return name.removesuffix(_ENDING) or name


def _project_key(folders: Sequence[str]) -> str | None:
    return printable_path(folders[-1]) if len(folders) > 1 and folders[-2] == "projects" else None


def is_session_id(name: str) -> bool:
    """Return whether a file's name is the id of its session."""
    return UUID.fullmatch(name) is not None


UNREAD_FOLDERS = ("file-history", "plans", "tasks", "todos")
"""Folders with other data of sessions."""


def find_leftovers(home: AgentHome) -> Iterator[Leftover]:
    """Yield logged prompts and tool outputs whose transcript is missing, and folders that are not read yet."""
    for name in UNREAD_FOLDERS:
        if list_unlinked(home.path / name, home.disk):
            yield Leftover(home.path / name, "unread")
    there = {source.cluster for source in find_sources(home) if isinstance(source, Source)}
    for native_id, count in _count_logged_prompts(home).items():
        if native_id not in there:
            yield Leftover(home.path / "history.jsonl", "prompts", native_id, count)
    for project in list_unlinked(home.sessions, home.disk):
        if project.is_dir(follow_symlinks=False):
            yield from _find_lost_outputs(Path(project.path), home.disk, there)


def _count_logged_prompts(home: AgentHome) -> Counter[str]:
    """Return how many prompts of each session the log has; older versions did not record the session."""
    file = read_bytes(home.path / "history.jsonl", home.disk)
    typed: Counter[str] = Counter()
    for line in decode_lines(file.data, str(file.path)) if isinstance(file, FileBytes) else ():
        if not isinstance(line, Problem) and type(line.value) is dict:
            native_id = line.value.get("sessionId")
            if type(native_id) is str and UUID.fullmatch(native_id):
                typed[native_id] += 1
    return typed


def _find_lost_outputs(project: Path, disk: Disk, there: set[str | None]) -> Iterator[Leftover]:
    for session in list_unlinked(project, disk):
        is_folder = session.is_dir(follow_symlinks=False) and UUID.fullmatch(session.name)
        if is_folder and session.name not in there:
            outputs = list_unlinked(Path(session.path) / "tool-results", disk)
            if outputs:
                yield Leftover(Path(session.path), "outputs", session.name, len(outputs))


DEFAULT_DAYS = 30
_DAY = 86_400
_MOST_DAYS = 36_500


def read_retention_limit(home: AgentHome) -> RetentionLimit:
    """Return how long a transcript is kept after its last change."""
    path = home.path / "settings.json"
    settings = read_settings(path, home.disk)
    if isinstance(settings, Problem):
        return RetentionLimit(DEFAULT_DAYS * _DAY, "written", problems=(settings,))
    days = settings.get("cleanupPeriodDays", DEFAULT_DAYS)
    if type(days) not in (int, float) or days < 0:
        odd = problem(
            "unexpected-shape", "no number of days", printable_path(path), pointer="/cleanupPeriodDays"
        )
        return RetentionLimit(DEFAULT_DAYS * _DAY, "written", problems=(odd,))
    return RetentionLimit(min(days, _MOST_DAYS) * _DAY, "written")

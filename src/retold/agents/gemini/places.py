"""Where Gemini CLI keeps its sessions, and what a path says about a file.

Evidence: `docs/formats/gemini.md`, sections 2, 4.1 and 13.
"""

import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from retold.agents.protocol import Home, Source
from retold.model.problem import Problem, problem
from retold.reading.files import printable

NOT_PROJECTS = frozenset(("bin", "background-processes"))
_NAME_TIME = re.compile(r"(\d{4})-(\d{2})-(\d{2})T(\d{2})-(\d{2})(?:-(\d{2}))?")
_ENDING = re.compile(r"\.(?:json|jsonl|md|out|txt)(?:\..*)?$")
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


def homes(env: Mapping[str, str]) -> Iterator[Home]:
    """Yield the folder that holds `tmp`; `GEMINI_CLI_HOME` may name it or, as the CLI means it, its parent."""
    if sessions := env.get("GEMINI_SESSIONS_DIR"):
        yield Home(Path(sessions).parent)
        return
    base = Path(env.get("GEMINI_CLI_HOME") or env.get("HOME") or env.get("USERPROFILE") or Path.home())
    yield Home(base if (base / "tmp").is_dir() and base.name.endswith("gemini") else base / ".gemini")


def find(home: Home) -> Iterator[Source | Problem]:
    """Yield every file of a home that may hold conversations, in a steady order."""
    for project in _entries(home.path / "tmp"):
        if isinstance(project, Problem):
            yield project
        elif project.is_dir(follow_symlinks=False) and project.name not in NOT_PROJECTS:
            yield from _sources(Path(project.path), home)


def _sources(project: Path, home: Home) -> Iterator[Source | Problem]:
    for entry in _entries(project):
        if isinstance(entry, Problem):
            yield entry
        elif entry.is_file(follow_symlinks=False):
            if entry.name == "logs.json" or re.fullmatch(r"checkpoint.*\.json", entry.name):
                yield Source(Path(entry.path), home)
        elif entry.name == "checkpoints" and entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path), home)
        elif entry.name == "chats" and entry.is_dir(follow_symlinks=False):
            yield from _chats(Path(entry.path), home)


def _chats(chats: Path, home: Home) -> Iterator[Source | Problem]:
    yield from _files(chats, home)
    for entry in _entries(chats):
        if not isinstance(entry, Problem) and entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path), home)


def _files(folder: Path, home: Home) -> Iterator[Source | Problem]:
    for entry in _entries(folder):
        if isinstance(entry, Problem):
            yield entry
        elif entry.is_file(follow_symlinks=False) and _SESSION_MATERIAL.fullmatch(entry.name):
            yield Source(Path(entry.path), home)


def _entries(folder: Path) -> Iterator[os.DirEntry[str] | Problem]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield problem("unreadable-file", error.strerror or str(error), printable(folder))


def origin(path: Path) -> Origin:
    """Return what the path says: names only, but for the look at which file a subagent's parent is."""
    folder, _, name = str(path).rpartition(os.sep)
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
        parent_stem=_parent_stem(Path(chats), parent_id) if parent_id else None,
        name=name,
    )


def stem(name: str) -> str:
    """Return a file's name without its ending, whatever was appended behind that."""
    return _ENDING.sub("", name) or name


def _parent_stem(chats: Path, parent_id: str) -> str | None:
    short = re.sub(r"[^A-Za-z0-9_-]", "_", parent_id)[:8]
    names = (entry.name for entry in _entries(chats) if not isinstance(entry, Problem))
    stems = sorted(stem(name) for name in names if name.startswith("session-") and f"-{short}.json" in name)
    return stems[0] if stems else None

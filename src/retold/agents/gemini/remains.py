"""What lies in Gemini CLI's home beside the sessions: outputs of deleted ones, and what other programs keep there.

The prompts in `logs.json` are read as sessions of their own, and are not told here.
"""

from collections.abc import Iterator
from pathlib import Path

from retold.agents.gemini.places import NOT_PROJECTS, short_id
from retold.agents.protocol import Home, Remains
from retold.model.problem import Problem
from retold.reading.disk import Disk, DiskEntry
from retold.reading.folders import entries

UNREAD = ("antigravity", "antigravity-cli")
"""Folders of Antigravity, which keeps conversations of its own in the same home."""
_OWNED = "session-"


def remains(home: Home) -> Iterator[Remains]:
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
    names = [file.name for file in _found(project / "chats", disk)]
    for one in kept:
        native_id = one.name.removeprefix(_OWNED)
        ending = f"-{short_id(native_id)}.json"
        is_owned = any(ending in name or name == native_id for name in names)
        if one.is_dir(follow_symlinks=False) and not is_owned:
            count = len(_found(Path(one.path), disk))
            if count:
                yield Remains(Path(one.path), "outputs", native_id, count)


def _found(folder: Path, disk: Disk) -> list[DiskEntry]:
    if disk.is_link(str(folder)):
        return []
    return [entry for entry in entries(folder, disk) if not isinstance(entry, Problem)]

"""What lies in Gemini CLI's home beside the sessions: outputs of deleted ones, and what other programs keep there.

The prompts in `logs.json` are read as sessions of their own, and are not told here.
"""

from collections.abc import Iterator
from pathlib import Path

from retold.agents.gemini.places import NOT_PROJECTS, short_id
from retold.agents.protocol import AgentHome, Remains
from retold.model.problem import Problem
from retold.reading.disk import Disk, DiskEntry, list_folder

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

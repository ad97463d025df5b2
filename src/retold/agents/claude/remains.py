"""What is left in Claude Code's home of transcripts that were deleted: prompts in `history.jsonl`, and tool outputs."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from retold.agents.claude.places import UUID, find
from retold.agents.protocol import AgentHome, Remains, Source
from retold.model.problem import Problem
from retold.reading.disk import Disk, DiskEntry, FileBytes, list_folder, read_bytes
from retold.reading.jsonl import decode_lines

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

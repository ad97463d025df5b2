"""What was asked of the world by a sync, and what it answered: as long as the answers stay, so does the result.

This is the way of a sync that finds nothing new, so nothing heavy is imported here.
"""

from __future__ import annotations

import os

from retold.archive.store import as_stored, digest
from retold.archive.sync_state import BELOW, HIDDEN, kept_answers

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Mapping

    from retold.archive.store import Store

ENV, FOLDER, FILE, HELD, FACT = "env", "folder", "file", "held", "fact"
UNSURE = 2_000_000_000
"""Nanoseconds in which a second change may bear the time of the first: some file systems count in two seconds."""
TAIL = 4096
_SPACES = 3
"""The spaces in an answer without the digest of the file's end."""


def env_answer(env: Mapping[str, str | None], name: str) -> str | bytes | None:
    """Return the value of a variable as the archive takes it: a path that is no text as its bytes."""
    value = env.get(name)
    return None if value is None else as_stored(value)


def folder_answer(path: str, asked_ns: int | None = None) -> int | None:
    """Return when something was last put into a folder; none if it is not there, and no time that is too near."""
    try:
        modified_ns = os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return None
    return -1 if asked_ns is not None and modified_ns > asked_ns - UNSURE else modified_ns


def file_answer(path: str, *, with_tail: bool = False) -> str | None:
    """Return size, time and identity of a file; with a digest of its end, where the time may lie."""
    try:
        found = os.stat(path)
        told = f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"
        return f"{told} {tail(path)}" if with_tail else told
    except (OSError, ValueError):
        return None


def tail(path: str) -> str:
    """Return a digest of how a file ends."""
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - TAIL, 0))
        return tail_digest(file.read(TAIL)).hex()


def tail_digest(end: bytes) -> bytes:
    """Return what the last bytes of a file are known by."""
    return digest(end)


def is_unchanged(record: Store, scope: str, env: Mapping[str, str], facts: Mapping[str, object]) -> bool:
    """Tell whether the world would answer again what it has answered to the last sync of this scope."""
    is_known, starts = False, []
    hidden: dict[str, list[tuple[str, object]]] = {}
    for kind, asked, answer in kept_answers(record, scope):
        is_known = True
        if kind == BELOW:
            starts.append(os.fsdecode(asked))
        elif isinstance(asked, str) and asked.startswith(HIDDEN):
            hidden.setdefault(asked, []).append((kind, answer))
        elif answer != _now(kind, os.fsdecode(asked), answer, env, facts):
            return False
    if not hidden:
        return is_known
    from retold.ingest.hidden_answers import are_hidden_unchanged  # few archives hide anything

    return are_hidden_unchanged(
        record, starts, hidden, lambda kind, path, answer: _now(kind, path, answer, env, facts)
    )


def _now(
    kind: str, asked: str, answer: object, env: Mapping[str, str], facts: Mapping[str, object]
) -> object:
    if kind == HELD:
        has_tail = isinstance(answer, str) and answer.count(" ") > _SPACES
        return file_answer(asked, with_tail=has_tail)
    if kind == FOLDER:
        return folder_answer(asked)
    if kind == ENV:
        return env_answer(env, asked)
    if kind == FACT:
        return facts.get(asked)
    return file_answer(asked)

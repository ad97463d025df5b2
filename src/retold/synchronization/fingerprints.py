"""What was asked of the world by a sync, and what it answered: as long as the answers stay, so does the result.

This is the way of a sync that finds nothing new, so nothing heavy is imported here.
"""

from __future__ import annotations

import os

from retold.archive.keyed_hashes import HiddenPaths, key_of, keyed_hash, shown_paths
from retold.archive.queries.lookups import count_problems
from retold.archive.store import as_stored, digest
from retold.archive.sync_state import BELOW, HIDDEN, kept_answers

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from retold.archive.store import Store
    from retold.archive.sync_state import Answer


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


class CoverageCount:
    """Files found, read and unchanged; sessions that are new; problems in all of them."""

    __slots__ = ("found", "new_sessions", "problems", "read", "seconds", "unchanged")

    def __init__(  # noqa: PLR0913 - as many as the contract names
        self, found: int, read: int, unchanged: int, new_sessions: int, problems: int, seconds: float
    ) -> None:
        self.found, self.read, self.unchanged = found, read, unchanged
        self.new_sessions, self.problems, self.seconds = new_sessions, problems, seconds


def keep_found(record: Store, scope: str, agent: str, found: int, troubled: int) -> None:
    """Keep how many files of an agent there are, and how many could not be opened: true as long as nothing changes."""
    record.set_fact(f"coverage {scope} {agent}", f"{found} {troubled}")


def told_coverage(
    record: Store, scope: str, agents: Sequence[str], seconds: float, done: CoverageCount | None = None
) -> CoverageCount:
    """Return the coverage over all agents, of a sync that has read some files, or none."""
    kept = [(record.fact(f"coverage {scope} {agent}") or "0 0").split() for agent in agents]
    found, troubled = (sum(int(one[place]) for one in kept) for place in (0, 1))
    problems = count_problems(record) + troubled
    read, new = (done.read, done.new_sessions) if done is not None else (0, 0)
    return CoverageCount(found, read, found - read, new, problems, seconds)


REVISION = 5
"""Raised when a reader understands more: then everything is read again, from the originals where files are gone."""


OWN = "prices.toml"
"""The file of the user's own prices, in retold's folder."""
_PACKAGE = "genai_prices"


def priced_by(folder: str) -> str:
    """Return what tells prices from others, without a look at them."""
    library = f"genai-prices {library_version()}"
    try:
        with open(os.path.join(folder, OWN), "rb") as file:
            return f"{OWN} ({digest(file.read()).hex()[:8]}) and {library}"
    except FileNotFoundError:
        return library


def library_version() -> str:
    """Return the version of the library; `importlib.metadata` would take four starts of Python to say it."""
    from importlib.machinery import PathFinder

    found = PathFinder.find_spec(_PACKAGE)
    site = os.path.dirname(os.path.dirname(found.origin or "")) if found is not None else ""
    begin, end = f"{_PACKAGE}-", ".dist-info"
    names = os.listdir(site) if site else []
    return next(
        (name[len(begin) : -len(end)] for name in names if name.startswith(begin) and name.endswith(end)),
        "?",
    )


WAY = "way"
"""Marks a hidden folder above a path that was looked at."""
OF_PATHS = ("folder", "file", "held")


def with_hidden_paths(record: Store, agent: str, answers: Iterable[Answer]) -> Iterator[Answer]:
    """Yield the answers as they are to be kept: none names a path that only forgotten sessions lead to."""
    hidden = HiddenPaths(record)
    if not hidden:
        yield from answers
        return
    shown: set[str] = set()
    for path in shown_paths(record, agent):
        while path not in shown:
            shown.add(path)
            path = os.path.dirname(path)  # noqa: PLW2901 - up to the root
    for kind, asked, answer in answers:
        way = list(_hidden_way(os.fsdecode(asked), hidden, shown)) if kind in OF_PATHS else []
        if not way:
            yield kind, asked, answer
            continue
        yield BELOW, as_stored(os.path.dirname(way[0])), None
        yield from ((WAY, hidden.stored(folder), None) for folder in way[:-1])
        yield kind, hidden.stored(way[-1]), answer


def _hidden_way(path: str, hidden: HiddenPaths, shown: set[str]) -> Iterator[str]:
    """Yield the hidden part of a path, folder by folder; nothing if none of it is hidden."""
    whole = [path]
    while (above := os.path.dirname(whole[-1])) != whole[-1]:
        whole.append(above)
    is_hidden = False
    for folder in reversed(whole):
        is_hidden = is_hidden or (folder in hidden and folder not in shown)
        if is_hidden:
            yield folder


def are_hidden_unchanged(
    record: Store,
    starts: Iterable[str],
    kept: Mapping[str, Iterable[tuple[str, object]]],
    now: Callable[[str, str, object], object],
) -> bool:
    """Tell whether hidden paths answer as before: `kept` has their answers by what stands for the path."""
    key, folders = key_of(record), list(starts)
    left = {stored for stored, answers in kept.items() if any(answer is not None for _, answer in answers)}
    while folders:
        folder = folders.pop()
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            stored = f"{HIDDEN}{keyed_hash(key, path).hex()}"
            if stored not in kept:
                continue
            if any(kind != WAY and answer != now(kind, path, answer) for kind, answer in kept[stored]):
                return False
            left.discard(stored)
            folders.append(path)
    return not left

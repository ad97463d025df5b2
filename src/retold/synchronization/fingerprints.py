"""Fingerprints of every file, folder and variable that a sync looked at: if none has changed, the next sync can end at once.

A sync that finds nothing new imports only this module and `update`, so neither imports anything heavy.
"""

from __future__ import annotations

import os
import time
from functools import partial

from retold.archive.annotations import HiddenPaths, keyed_hash, load_hash_key, load_visible_paths
from retold.archive.store import as_stored, digest
from retold.archive.sync_state import HIDDEN_FOLDER, HIDDEN_PREFIX, count_problems, load_dependencies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from retold.archive.store import Store
    from retold.archive.sync_state import Dependency


REVISION = 5
"""The version of the readers. When it is raised, every file is read again, from its originals if it is gone."""
ENV, FOLDER, FILE, SOURCE, FACT = "env", "folder", "file", "held", "fact"
"""The kinds of dependencies. A source is a file that may hold sessions; other files were only looked at."""
_HIDDEN_PARENT = "way"
"""The kind of a hidden folder above a path that was looked at."""
_PATH_KINDS = (FOLDER, FILE, SOURCE)
TIMESTAMP_UNCERTAINTY = 2_000_000_000
"""Nanoseconds in which two changes may get the same time: some file systems count in steps of two seconds."""
TAIL = 4096
_SPACES = 3
"""The spaces in the fingerprint of a file without the digest of its tail."""
OWN_PRICES = "prices.toml"
"""The file of the user's own prices, in the folder of the archive."""
_PRICE_PACKAGE = "genai_prices"
KNOWN_RATES_FILE = os.path.join(os.path.dirname(__file__), "known_rates.json")
"""The rates of one version of the library: it need not be imported for most models, and is not needed at all."""


def env_fingerprint(env: Mapping[str, str | None], name: str) -> str | bytes | None:
    """Return the value of a variable; as bytes if it is a path that is not text."""
    value = env.get(name)
    return None if value is None else as_stored(value)


def folder_fingerprint(path: str, asked_ns: int | None = None) -> int | None:
    """Return the time of the last change of a folder's list; None if there is no folder, -1 if the change is too recent."""
    try:
        modified_ns = os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return None
    return -1 if asked_ns is not None and modified_ns > asked_ns - TIMESTAMP_UNCERTAINTY else modified_ns


def file_fingerprint(path: str, *, with_tail: bool = False) -> str | None:
    """Return size, times and inode of a file; also a digest of its tail where the time may be unreliable."""
    try:
        found = os.stat(path)
        text = f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"
        return f"{text} {tail_digest(path)}" if with_tail else text
    except (OSError, ValueError):
        return None


def tail_digest(path: str) -> str:
    """Return a digest of the last bytes of a file."""
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - TAIL, 0))
        return digest(file.read(TAIL)).hex()


MOST_CHANGED = 4
"""How many changed files `find_changed` tells apart from any other change."""


def find_changed(
    store: Store, scope: str, env: Mapping[str, str], facts: Mapping[str, object]
) -> list[str] | None:
    """Return the files with sessions that may have changed since the last sync of a scope; None if something else has.

    Nothing else has if everything else that the sync looked at still has the same fingerprint.
    """
    current = partial(_current_value, env, facts)
    is_known, folders, changed = False, list[str](), list[str]()
    hidden: dict[str, list[tuple[str, object]]] = {}
    for kind, subject, value in load_dependencies(store, scope):
        is_known = True
        if kind == HIDDEN_FOLDER:
            folders.append(os.fsdecode(subject))
        elif isinstance(subject, str) and subject.startswith(HIDDEN_PREFIX):
            hidden.setdefault(subject, []).append((kind, value))
        elif value != current(kind, os.fsdecode(subject), value):
            if kind != SOURCE or len(changed) == MOST_CHANGED:
                return None
            changed.append(os.fsdecode(subject))
    if not is_known or (hidden and not _are_hidden_unchanged(load_hash_key(store), folders, hidden, current)):
        return None
    return changed


def _current_value(
    env: Mapping[str, str], facts: Mapping[str, object], kind: str, subject: str, value: object
) -> object:
    """Return the present value of a dependency; of a file with sessions, in the form of its last value."""
    if kind == SOURCE:
        return file_fingerprint(subject, with_tail=isinstance(value, str) and value.count(" ") > _SPACES)
    if kind == FOLDER:
        return folder_fingerprint(subject)
    if kind == ENV:
        return env_fingerprint(env, subject)
    return facts.get(subject) if kind == FACT else file_fingerprint(subject)


class FileMarks:
    """The marks by which the archive recognises an unchanged file."""

    __slots__ = ("identity", "modified_ns", "read_ns", "size", "tail")

    def __init__(self, size: int, modified_ns: int, tail: bytes, read_ns: int, identity: str) -> None:
        self.size, self.modified_ns, self.tail = size, modified_ns, tail
        self.read_ns, self.identity = read_ns, identity


def check_changed(path: str, marks: FileMarks | None) -> tuple[str | None, bool]:
    """Return the fingerprint of a file, and whether it is new or has changed."""
    fingerprint = file_fingerprint(path)
    if marks is None or fingerprint != f"{marks.size} {marks.modified_ns} {marks.identity}":
        is_reliable = fingerprint is not None and has_reliable_time(
            int(fingerprint.split(" ", 2)[1]), time.time_ns()
        )
        return fingerprint if is_reliable else f"{fingerprint} unsure", True
    if has_reliable_time(marks.modified_ns, marks.read_ns):
        return fingerprint, False
    tail = tail_digest(path)
    return f"{fingerprint} {tail}", tail != marks.tail.hex()


def has_reliable_time(modified_ns: int, read_ns: int) -> bool:
    """Return whether any change since a file was read has changed its time."""
    return modified_ns < read_ns - TIMESTAMP_UNCERTAINTY


def _are_hidden_unchanged(
    key: bytes,
    folders: list[str],
    hidden: Mapping[str, Sequence[tuple[str, object]]],
    current: Callable[[str, str, object], object],
) -> bool:
    """Return whether hidden paths, known by keyed hashes alone, are unchanged: folders are searched for the hashes."""
    missing = {name for name, values in hidden.items() if any(value is not None for _, value in values)}
    while folders:
        folder = folders.pop()
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for path in (os.path.join(folder, name) for name in names):
            hidden_name = f"{HIDDEN_PREFIX}{keyed_hash(key, path).hex()}"
            for kind, value in hidden.get(hidden_name, ()):
                if kind != _HIDDEN_PARENT and value != current(kind, path, value):
                    return False
            if hidden_name in hidden:
                missing.discard(hidden_name)
                folders.append(path)
    return not missing


def hide_paths(store: Store, agent: str, dependencies: Iterable[Dependency]) -> Iterator[Dependency]:
    """Yield dependencies as they are stored: without the names of paths that only forgotten sessions lead to."""
    hidden = HiddenPaths(store)
    if not hidden:
        yield from dependencies
        return
    visible: set[str] = set()
    for path in load_visible_paths(store, agent):
        while path not in visible:
            visible.add(path)
            path = os.path.dirname(path)  # noqa: PLW2901 - up to the root
    dependencies = list(dependencies)
    paths = (os.fsdecode(subject) for kind, subject, _ in dependencies if kind in _PATH_KINDS)
    # An agent may have several folders of one name for a project: `tmp/NAME` and `history/NAME`.
    names = {os.path.basename(way[0]) for path in paths if (way := _hidden_way(path, hidden, visible))}
    for kind, subject, value in dependencies:
        way = _hidden_way(os.fsdecode(subject), hidden, visible, names) if kind in _PATH_KINDS else []
        if not way:
            yield kind, subject, value
            continue
        yield HIDDEN_FOLDER, as_stored(os.path.dirname(way[0])), None
        yield from ((_HIDDEN_PARENT, hidden.placeholder(folder), None) for folder in way[:-1])
        yield kind, hidden.placeholder(way[-1]), value


def _hidden_way(
    path: str, hidden: HiddenPaths, visible: set[str], names: Container[str] = frozenset()
) -> list[str]:
    """Return the hidden folders of a path and the path itself; nothing if none of them is hidden.

    A folder with one of the `names` is hidden, too, unless it contains a visible file.
    """
    whole = [path]
    while (parent := os.path.dirname(whole[-1])) != whole[-1]:
        whole.append(parent)
    way: list[str] = []
    for folder in reversed(whole):
        if way or (folder not in visible and (folder in hidden or os.path.basename(folder) in names)):
            way.append(folder)
    return way


def make_stamp(files: Iterable[tuple[str, int, object]]) -> bytes:
    """Return a digest of the version of the reader, and of the path, size and time of each file of a conversation."""
    from hashlib import blake2b

    lines = [str(REVISION), *sorted(f"{path}\0{size}\0{modified_at}" for path, size, modified_at in files)]
    return blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=12).digest()


class CoverageCount:
    """Counts of a sync: files found, read and unchanged, new sessions, and problems in all files."""

    __slots__ = ("found", "new_sessions", "problems", "read", "seconds", "unchanged")

    def __init__(  # noqa: PLR0913 - the contract of the command names as many
        self, found: int, read: int, unchanged: int, new_sessions: int, problems: int, seconds: float
    ) -> None:
        self.found, self.read, self.unchanged = found, read, unchanged
        self.new_sessions, self.problems, self.seconds = new_sessions, problems, seconds


def save_coverage(store: Store, scope: str, agent: str, found: int, unopened: int) -> None:
    """Write the number of an agent's files, and of those that could not be opened. Both hold while nothing changes."""
    store.set_fact(f"coverage {scope} {agent}", f"{found} {unopened}")


def load_coverage(
    store: Store, scope: str, agents: Sequence[str], seconds: float, done: CoverageCount | None = None
) -> CoverageCount:
    """Return the counts over all agents, for a sync that read some files or none."""
    counts = [(store.fact(f"coverage {scope} {agent}") or "0 0").split() for agent in agents]
    found, unopened = (sum(int(count[column]) for count in counts) for column in (0, 1))
    read, new = (done.read, done.new_sessions) if done is not None else (0, 0)
    return CoverageCount(found, read, found - read, new, count_problems(store) + unopened, seconds)


def price_source(folder: str) -> str:
    """Return the source of prices: the version of the library, and a digest of the user's own prices if there are any."""
    installed = library_version()
    library = f"genai-prices {installed or f'{known_version()} (copy)'}"
    try:
        with open(os.path.join(folder, OWN_PRICES), "rb") as file:
            return f"{OWN_PRICES} ({digest(file.read()).hex()[:8]}) and {library}"
    except FileNotFoundError:
        return library


def known_version() -> str:
    """Return the version of the library whose prices are in the price file; it stands at its beginning."""
    with open(KNOWN_RATES_FILE, encoding="utf-8") as file:
        return file.read(len('{"version": "') + 32).split('"')[3]


def library_version() -> str | None:
    """Return the version of the price library; None without it. `importlib.metadata` would take four starts of Python."""
    site = os.path.dirname(library_folder())
    begin, end = f"{_PRICE_PACKAGE}-", ".dist-info"
    names = os.listdir(site) if site else []
    return next(
        (name[len(begin) : -len(end)] for name in names if name.startswith(begin) and name.endswith(end)),
        None,
    )


def library_folder() -> str:
    """Return the folder of the price library; "" without it."""
    from importlib.machinery import PathFinder

    found = PathFinder.find_spec(_PRICE_PACKAGE)
    return "" if found is None else os.path.dirname(found.origin or "")

"""A session with everything that was said in it, read again from its originals: the archive alone is enough."""

import errno
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from retold.agents.protocol import Agent, AgentHome, Lost, Reading, Source
from retold.agents.registry import AGENTS
from retold.archive.database import DamagedError
from retold.archive.queries.lookups import (
    copied_messages,
    kept_in_cluster,
    known_by,
    latest_at,
    others_requests,
    paths_below,
    read_from,
    renamed_keys,
)
from retold.archive.rows import stable_uid
from retold.archive.store import Originals, Store, as_path, summary_of
from retold.model.problem import Problem
from retold.model.serialization import decode_summary
from retold.model.session import Entry, Message, Part, Session, ToolCall, View
from retold.reading.disk import Disk, DiskEntry, OpenFile
from retold.sessions.conversations import Scraps, conversation_name, conversations, scraps


class Ownership:
    """What the archive knows of one session's entries."""

    def __init__(self, record: Store, session: int) -> None:
        self._record = record
        self._copied, self._others = copied_messages(record, session), others_requests(record, session)

    def is_others(self, message: str | None, request: str | None) -> bool:
        """Tell whether a message belongs to another session, by its own id and its request's."""
        if self._others and request is not None and stable_uid("request", request) in self._others:
            return True
        return bool(self._copied) and stable_uid("entry", message) in self._copied

    def marked(self, timeline: Iterable[Entry]) -> Iterator[Entry]:
        """Yield entries; those that belong to another session are marked, and subagents have their keys."""
        entries = list(timeline)
        # There may be many, and to find them all sessions are gone through.
        renamed = renamed_keys(self._record) if _have_child(entries) else {}
        if not (renamed or self._copied or self._others):
            yield from entries
            return
        for entry in entries:
            told = entry
            if isinstance(entry, Message):
                if self.is_others(entry.id, entry.usage.request if entry.usage else None):
                    told = replace(entry, own=False)
                if renamed and any(_child(part) in renamed for part in entry.parts):
                    told = replace(told, parts=tuple(_renamed(entry.parts, renamed)))
            yield told


def _have_child(entries: Iterable[Entry]) -> bool:
    for entry in entries:
        if isinstance(entry, Message):
            for part in entry.parts:
                if isinstance(part, ToolCall) and part.child is not None:
                    return True
    return False


def _child(part: Part) -> str | None:
    return part.child if isinstance(part, ToolCall) else None


def _renamed(parts: Sequence[Part], renamed: Mapping[str, str]) -> Iterator[Part]:
    for part in parts:
        child = renamed.get(part.child or "") if isinstance(part, ToolCall) else None
        yield part if child is None else replace(part, child=child)


class KeptEntry(NamedTuple):
    """Something that a folder held."""

    name: str
    path: str
    is_kept: bool
    """A file; else a folder in which one is."""

    def is_file(self, *, follow_symlinks: Literal[False]) -> bool:  # noqa: ARG002 - as `os.DirEntry` has it
        """Tell whether it is a file."""
        return self.is_kept

    def is_dir(self, *, follow_symlinks: Literal[False]) -> bool:  # noqa: ARG002 - the same
        """Tell whether it is a folder."""
        return not self.is_kept


class KeptFile:
    """An original, opened: unpacked chunk by chunk as it is read."""

    __slots__ = ("_originals", "_place", "modified_ns", "original", "size")
    identity = ""

    def __init__(self, originals: Originals, original: int, size: int, modified_ns: int) -> None:
        self._originals, self.original, self._place = originals, original, 0
        self.size, self.modified_ns = size, modified_ns

    def read(self, size: int, /) -> bytes:
        """Return the next bytes; raises Damaged where the archive lacks some of them."""
        wanted = max(min(size, self.size - self._place), 0)
        data = self._originals.data(self.original, self._place, wanted)
        if len(data) != wanted:
            why = f"{wanted - len(data):,} bytes are missing"
            raise DamagedError(f"an original is damaged ({why}): bring back a copy of archive.db")
        self._place += len(data)
        return data

    def seek(self, offset: int, /) -> None:
        """Go on at a place."""
        self._place = offset

    def status(self) -> tuple[int, int]:
        """Return size and time: they stay."""
        return self.size, self.modified_ns

    def close(self) -> None:
        """Nothing has to be given back."""


class ArchiveDisk:
    """What an agent's homes held."""

    def __init__(self, record: Store, agent: str) -> None:
        self._record, self._agent = record, agent

    def open(self, path: str) -> OpenFile:
        """Open the latest that was kept of a file."""
        found = latest_at(self._record, self._agent, path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "not in the archive", path)
        return KeptFile(self._record.originals, *found)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return what a folder held."""
        below = folder.rstrip(os.sep) + os.sep
        names: dict[str, bool] = {}
        for path in self._below(below):
            name, is_deeper, _ = path[len(below) :].partition(os.sep)
            names[name] = names.get(name, True) and not is_deeper
        if not names:
            raise FileNotFoundError(errno.ENOENT, "not in the archive", folder)
        return [KeptEntry(name, below + name, is_kept) for name, is_kept in sorted(names.items())]

    def _below(self, start: str) -> list[str]:
        return [as_path(path) for path in paths_below(self._record, self._agent, start)]

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder was there."""
        return bool(self._below(path.rstrip(os.sep) + os.sep))

    def is_file(self, path: str) -> bool:
        """Tell whether a file was there."""
        return latest_at(self._record, self._agent, path) is not None

    def is_link(self, path: str) -> bool:  # noqa: ARG002 - as a Disk has it
        """No link is kept."""
        return False


class PinnedDisk:
    """A Disk on which one file is what it was at another time."""

    def __init__(self, disk: Disk, path: str, file: KeptFile) -> None:
        self._disk, self._path, self._file = disk, path, file
        self.original = file.original
        self.entries, self.is_folder = disk.entries, disk.is_folder
        self.is_file, self.is_link = disk.is_file, disk.is_link

    def open(self, path: str) -> OpenFile:
        """Open a file; the one that is pinned at its beginning."""
        if path != self._path:
            return self._disk.open(path)
        self._file.seek(0)
        return self._file


def load_session(record: Store, key: str, view: View = "full") -> Session | None:
    """Return a session by its key, all of it as it was at one moment; None if there is none."""
    with record.connection:
        found = [_retold(record, key, view)]
    return found[0]


def load_for_restore(record: Store, key: str) -> Lost | None:
    """Return all that there is of a session, to write it back; None if there is none."""
    row = known_by(record, key)
    if row is None:
        return None
    number, name, agent, cluster, packed = row
    known = decode_summary(summary_of(packed))
    found = _read(AGENTS[agent], _sources(record, agent, cluster, number), name, "full", _own([known]))
    readings = () if found is None else found[0]
    disk = ArchiveDisk(record, agent)
    rows = kept_in_cluster(record, agent, cluster) if cluster is not None else ()
    files = [_source(disk, *row) for row in rows]
    return Lost(known, readings, files)


def _retold(record: Store, key: str, view: View) -> Session | None:
    row = known_by(record, key)
    if row is None:
        return None
    return _marked(record, row, load_raw(record, row, view))


def _marked(record: Store, row: Sequence[Any], session: Session) -> Session:
    marked = Ownership(record, row[0]).marked(session.timeline)
    return msgspec.structs.replace(session, timeline=tuple(marked))


def load_raw(record: Store, row: Sequence[Any], view: View) -> Session:
    """Return a session by what it is known by; what of its timeline belongs to others is not told."""
    number, name, agent, cluster, packed = row
    known = decode_summary(summary_of(packed))
    found = _read(AGENTS[agent], _sources(record, agent, cluster, number), name, view, _own([known]))
    if (
        found is None
        and known.counts.messages
        and next(read_from(record, agent, cluster, number), None) is None
    ):
        raise DamagedError(
            f"the archive lacks all that it kept of {known.key}: bring back a copy of archive.db"
        )
    return known if found is None else _as_known(found[1], known)


def load_many(record: Store, keys: Iterable[str]) -> Iterator[tuple[int, int, Session]]:
    """Yield sessions in their full view, each with its id and its name; those that were read from the same files are read once.

    What is not there any more is left out.
    """
    alike: defaultdict[tuple[Any, ...], list[Sequence[Any]]] = defaultdict(list)
    with record.connection:
        for key in keys:
            row = known_by(record, key)
            if row is not None:
                number, _, agent, cluster, _ = row
                alike[agent, *read_from(record, agent, cluster, number)].append(row)
    shelf = _SessionCacheFolder(record)
    for (agent, *files), rows in alike.items():
        with record.connection:
            told = shelf.told(agent, files, rows)
            found = [(row[0], row[1], _marked(record, row, session)) for row, session in told]
        yield from found


class _SessionCacheFolder:
    """Sessions as files tell them; what files of many conversations say is kept in mind from one to the next."""

    def __init__(self, record: Store) -> None:
        self._record = record
        self._scraps: tuple[tuple[Any, ...], Scraps] = ((), Scraps())

    def told(
        self, agent: str, files: Sequence[Sequence[Any]], rows: Sequence[Sequence[Any]]
    ) -> Iterator[tuple[Sequence[Any], Session]]:
        """Yield each of some sessions by what it is known by; they were read from the same files."""
        reader = AGENTS[agent]
        loose, clustered = _parted(_as_sources(self._record, agent, files))
        summaries = {row[1]: decode_summary(summary_of(row[4])) for row in rows}
        own = _own(summaries.values())
        asked = (agent, *(file for file in files if file[4] is None))
        if asked != self._scraps[0]:
            self._scraps = asked, scraps(reader, _readings(reader, loose, own), _leave_out)
        told = _told(reader, _readings(reader, clustered, own), self._scraps[1], summaries, "full", own)
        found = {name: session for name, _, session in told}
        for row in rows:
            known, session = summaries[row[1]], found.get(row[1])
            yield row, known if session is None else _as_known(session, known)


def _leave_out(readings: Sequence[Reading], error: Exception) -> None:
    """Leave out what the agent fails on in files of many conversations: it may be of others."""


class _Own(msgspec.Struct, frozen=True):
    """The files that some sessions were read from."""

    paths: frozenset[str]
    damaged: frozenset[str]
    """The paths of those of which an earlier version was damaged when a sync read them: the sessions go without it."""


def _own(sessions: Iterable[Session]) -> _Own:
    paths, damaged = set[str](), set[str]()
    for session in sessions:
        paths.update(source.path for source in session.sources)
        damaged.update(one.path for one in session.problems if one.code == "original-damaged" and one.path)
    return _Own(frozenset(paths), frozenset(damaged))


def _read(
    agent: Agent, sources: Iterable[Source], name: int, view: View, own: _Own
) -> tuple[Sequence[Reading], Session] | None:
    """Return what a session is read from, and the session; `own` are its files."""
    loose, clustered = _parted(sources)
    shared = scraps(agent, _readings(agent, loose, own), _leave_out)
    found = next(_told(agent, _readings(agent, clustered, own), shared, [name], view, own), None)
    return None if found is None else found[1:]


def _parted(sources: Iterable[Source]) -> tuple[list[Source], list[Source]]:
    """Return files of many conversations, and those of a cluster."""
    loose: list[Source] = []
    clustered: list[Source] = []
    for source in sources:
        (loose if source.cluster is None else clustered).append(source)
    return loose, clustered


def _readings(agent: Agent, sources: Iterable[Source], own: _Own) -> list[Reading]:
    """Return what files say. A file that cannot be read is left out, unless it is one of the sessions' own."""
    found: list[Reading] = []
    for source in sources:
        try:
            told = agent.read(source)
        except Exception as error:
            is_earlier = isinstance(error, DamagedError) and isinstance(source.disk, PinnedDisk)
            if source.shown in own.paths and not (is_earlier and source.shown in own.damaged):
                raise
            continue
        if not isinstance(told, Problem):
            found.extend(told)
    return found


def _told(  # noqa: PLR0913 - the files of a cluster, and the sessions that are asked for
    agent: Agent,
    clustered: Iterable[Reading],
    shared: Scraps,
    names: Iterable[int],
    view: View,
    own: _Own,
) -> Iterator[tuple[int, Sequence[Reading], Session]]:
    """Yield those of some sessions that readings tell of, by their names.

    A session of other files than those of `own` that cannot be joined is left out.
    """

    def fail(readings: Sequence[Reading], error: Exception) -> None:
        if any(reading.source.shown in own.paths for reading in readings):
            raise error

    wanted = set(names)
    for group, readings, session in conversations(agent, clustered, shared, view, fail):
        name = conversation_name(agent, group)
        if name in wanted:
            wanted.remove(name)
            yield name, readings, session
    for group, said in shared.groups.items() if wanted else ():
        name = conversation_name(agent, group)
        if name in wanted:
            yield name, said, agent.join(said, view)


def _sources(record: Store, agent: str, cluster: str | None, session: int) -> Iterator[Source]:
    """Yield the files of a cluster as they were last, and as they were before where that is kept as well."""
    return _as_sources(record, agent, read_from(record, agent, cluster, session))


def _as_sources(record: Store, agent: str, files: Iterable[Sequence[Any]]) -> Iterator[Source]:
    disk = ArchiveDisk(record, agent)
    for path, home, folder, label, group, is_latest, *original in files:
        place = as_path(path)
        seen = disk if is_latest else PinnedDisk(disk, place, KeptFile(record.originals, *original))
        yield _source(seen, path, home, folder, label, group)


def _source(  # noqa: PLR0913 - what is kept of a file
    disk: Disk,
    path: str | bytes,
    home: str | bytes,
    folder: str | bytes,
    label: str | None,
    group: str | None,
) -> Source:
    return Source(
        Path(as_path(path)), AgentHome(Path(as_path(home)), Path(as_path(folder)), label, disk), group
    )


def _as_known(session: Session, known: Session) -> Session:
    """Return a session with all that the archive knows of it: its files alone do not tell what it is to others."""
    kept = {
        field: getattr(known, field)
        for field in (
            "key",
            "kind",
            "parent",
            "children",
            "project",
            "title",
            "tags",
            "usage",
            "cost_usd",
            "sources",
        )
    }
    damaged = [one for one in known.problems if one.code == "original-damaged"]
    return msgspec.structs.replace(session, **kept, problems=(*session.problems, *damaged))

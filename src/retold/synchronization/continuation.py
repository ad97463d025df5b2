"""Reading on from a bookmark: the later entries of a file as rows and as an index entry, and the next bookmark."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec
from msgspec.structs import replace

from retold.agents.bookmarks import VERSION, Bookmark, ReadWholeError
from retold.agents.protocol import Agent, AgentHome, Reading, Source
from retold.agents.registry import AGENTS
from retold.archive.growth import GrowingFile, GrownContent, GrownSession, load_other_files
from retold.archive.index.documents import TextLocator, make_documents
from retold.archive.index.reader import open_timeline
from retold.archive.index.writer import IndexEntry, IndexWriter, Timeline
from retold.archive.rows import count_changes, make_session_rows
from retold.archive.store import (
    SHARDS,
    Packer,
    Store,
    as_path,
    compress,
    decompress,
    digest,
    sample_checksum,
    shard_path,
)
from retold.model.problem import Problem
from retold.model.session import Entry, Message, Project, Session, ToolCall
from retold.reading.disk import Disk, DiskEntry, OpenFile, time_from_ns
from retold.sessions.archive_disk import MemoryFile
from retold.sessions.conversations import LONG_SESSION
from retold.sessions.timelines import TimelineStart, extend_timeline, start_timeline
from retold.synchronization.fingerprints import REVISION, TAIL, make_stamp
from retold.synchronization.growth import GrownFile

_LARGEST = 1 << 20
"""Bytes of the largest bookmark that is kept."""


class Continuation(msgspec.Struct, frozen=True, array_like=True):
    """A bookmark of a file, and what the archive and the index have of the entries around it."""

    version: int
    revision: int
    size: int
    """The bytes of the file that were read."""
    bookmark: Bookmark
    project: Project
    """As the file tells it."""
    files: dict[str, int]
    """The files that calls behind the bookmark name, and how many of the calls were to change them."""
    pages: int
    """The pages of the index with texts of entries before the bookmark."""
    start: TimelineStart


_DECODER = msgspec.msgpack.Decoder(Continuation)


class LaterPart(NamedTuple):
    """A bookmark, and the session with only the entries behind it."""

    bookmark: Bookmark
    session: Session


def choose_bookmark(agent: Agent, reading: Reading, session: Session, first: int = 0) -> LaterPart | None:
    """Return the first bookmark from which a file is read as at once; None if there is none.

    `first` is the seq of the first entry of the session.
    """
    for bookmark in agent.find_bookmarks(reading, session):
        try:
            later = read_on(agent, reading.source, bookmark)
        except ReadWholeError:
            continue
        entries = session.timeline[bookmark.beginning.entries - first :]
        if _without_timeline(later) == _without_timeline(session) and later.timeline == entries:
            return LaterPart(bookmark, later)
    return None


def make_continuation(
    agent: Agent, reading: Reading, session: Session, pages: int, before: Continuation | None = None
) -> bytes | None:
    """Return what is kept of a file for its next reading; None if it has to be read whole.

    The index has so many pages of the session. `before` is what was kept for this reading.
    """
    first, start = (
        (0, TimelineStart()) if before is None else (before.bookmark.beginning.entries, before.start)
    )
    found = choose_bookmark(agent, reading, session, first)
    if found is None:
        return None if before is None else _pack(_keep(before, reading.size, session))
    skipped = session.timeline[: found.bookmark.beginning.entries - first]
    return _pack(
        Continuation(
            VERSION,
            REVISION,
            reading.size,
            found.bookmark,
            session.project,
            dict(count_changes(found.session)),
            pages,
            start_timeline(skipped, start),
        )
    )


def count_pages(entry: IndexEntry) -> int:
    """Return how many pages the index has of a session with this entry."""
    return entry.first_page + sum(len(pages) for _, pages in entry.parts)


def _keep(before: Continuation, size: int, session: Session) -> Continuation:
    return replace(before, size=size, files=dict(count_changes(session)))


def _without_timeline(session: Session) -> Session:
    """Return what has to be the same; children are in other files."""
    return replace(session, timeline=(), children=())


def _pack(continuation: Continuation) -> bytes | None:
    try:
        packed = compress(msgspec.msgpack.encode(continuation))
    except (OverflowError, UnicodeEncodeError):  # an integer of more than 64 bits, or half a character
        return None
    return packed if len(packed) <= _LARGEST else None


def read_on(agent: Agent, source: Source, bookmark: Bookmark) -> Session:
    """Return the session of a file, with only the entries behind a bookmark."""
    readings = agent.read(source, [agent.open_bookmark(source, bookmark)])
    if isinstance(readings, Problem) or len(readings) != 1:
        raise ReadWholeError("it is not one session")
    return agent.join(readings)


class GrownDisk:
    """A disk with one file. A reader that looks at anything else needs a whole sync."""

    def __init__(self, path: str, data: bytes, modified_ns: int) -> None:
        self._path, self._data, self._modified_ns = path, data, modified_ns

    def open(self, path: str) -> OpenFile:
        """Open the file."""
        if path != self._path:
            _refuse(path)
        return MemoryFile(self._data, self._modified_ns)

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Raise ReadWholeError."""
        _refuse(folder)

    def is_folder(self, path: str) -> bool:
        """Raise ReadWholeError."""
        _refuse(path)

    def is_file(self, path: str) -> bool:
        """Raise ReadWholeError."""
        _refuse(path)

    def is_link(self, path: str) -> bool:
        """Raise ReadWholeError."""
        _refuse(path)


def _refuse(path: str) -> NoReturn:
    raise ReadWholeError(path)


class Growth(NamedTuple):
    """The later entries of a session as rows and as an index entry, and the file of the index that has the session."""

    session: GrownSession
    entry: IndexEntry
    shard: IndexWriter


class GrowthReader:
    """Reads files on from their bookmarks, and writes their later entries into the index."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shards = [IndexWriter(shard_path(store.folder, number), store.id) for number in range(SHARDS)]

    def close(self) -> None:
        """Close the index."""
        for shard in self._shards:
            shard.close()

    def read(self, grown: GrownFile) -> Growth:
        """Return the growth of a file; raise an error if it has to be read whole."""
        file, agent = grown.file, AGENTS[grown.file.agent]
        known = _DECODER.decode(decompress(file.bookmark))
        if (known.version, known.revision, known.size) != (VERSION, REVISION, file.size):
            raise ReadWholeError("the bookmark is of another reading")
        shard, pages = self._find_session(file)
        if pages < known.pages:
            raise ReadWholeError("the index is of another reading")
        start = agent.open_bookmark(_source(grown, b""), known.bookmark)
        data = grown.data()
        if data is None:
            raise ReadWholeError("the file was rewritten")
        source = _source(grown, data)
        readings = agent.read(source, [start])
        if isinstance(readings, Problem) or len(readings) != 1:
            raise ReadWholeError("it is not one session")
        (reading,) = readings
        session, first = agent.join(readings), known.bookmark.beginning.entries
        _check_session(session, file, known)
        rows = make_session_rows(
            replace(session, project=Project(*file.project)),
            file.uid,
            self._stamp(reading, file),
            file.cluster,
            (),
            None,
            first,
        )
        entry = self._index_entry(session, rows.stamp, known, data, file)
        files = dict(rows.files)
        if known.files.keys() - files.keys():
            raise ReadWholeError("a call is gone")
        changes = [(path, count - known.files.get(path, 0)) for path, count in rows.files]
        bookmark = make_continuation(agent, reading, session, count_pages(entry), known)
        content = self._content(grown, data)
        return Growth(GrownSession(file, content, rows, first, changes, bookmark), entry, shard)

    def _find_session(self, file: GrowingFile) -> tuple[IndexWriter, int]:
        """Return the file of the index that has a session as the archive has it, and the number of its pages."""
        for shard in self._shards:
            found = shard.growth_of(file.uid, file.stamp)
            if found is not None and found[1] == f"{file.original_uid:x}":
                return shard, found[0]
        raise ReadWholeError("the index does not have it")

    def _stamp(self, reading: Reading, file: GrowingFile) -> bytes:
        """Return the stamp of a session; the other files from which it was read are unchanged."""
        files: list[tuple[str, int, object]] = [(str(reading.source.path), reading.size, reading.modified_at)]
        for path, size, modified_ns in load_other_files(self._store, file):
            files.append((as_path(path), size, time_from_ns(modified_ns)))
        return make_stamp(files)

    def _index_entry(
        self, session: Session, stamp: bytes, known: Continuation, data: bytes, file: GrowingFile
    ) -> IndexEntry:
        first, start = known.bookmark.beginning.entries, known.bookmark.mark.offset
        locator = TextLocator([(0, data)], start, known.pages)
        parts = [
            (list(zip(spoken.docs, locator.locate(spoken), strict=True)), locator.take_pages())
            for spoken in make_documents(session, first)
        ]
        parts.append(([], locator.take_pages(is_end=True)))
        timeline = self._timeline(session, known, len(data), file)
        return IndexEntry(
            file.uid,
            stamp,
            (file.original_uid,),
            parts,
            timeline,
            first=first,
            first_page=known.pages,
        )

    def _timeline(
        self, session: Session, known: Continuation, size: int, file: GrowingFile
    ) -> Timeline | None:
        if file.cluster_size < LONG_SESSION <= file.cluster_size + size - file.size:
            raise ReadWholeError("it is long now")
        stored = open_timeline(self._store, file.uid, file.stamp)
        if stored is None:
            return None
        with stored:
            return extend_timeline(stored, known.start, session.timeline)

    def _content(self, grown: GrownFile, data: bytes) -> GrownContent:
        start, offset = self._store.originals.growth_start(grown.file.original)
        packer = Packer()
        packer.add(data[offset:])

        def read_part(begin: int, size: int) -> bytes:
            return data[begin : begin + size]

        return GrownContent(
            grown.size,
            grown.modified_ns,
            grown.identity,
            grown.read_ns,
            digest(data[-TAIL:]),
            sample_checksum(len(data), read_part),
            packer.finish(),
            start,
        )

    def write_index(self, growths: Sequence[Growth], generation: int) -> None:
        """Write later entries into the index, with the generation of the archive that has them."""
        for growth in growths:
            growth.shard.begin()
            growth.shard.put(growth.entry)
        for shard in self._shards:
            shard.commit(generation)


def _source(grown: GrownFile, data: bytes) -> Source:
    file = grown.file
    disk: Disk = GrownDisk(file.path, data, grown.modified_ns)
    home = AgentHome(Path(as_path(file.home)), Path(as_path(file.folder)), file.label, disk)
    return Source(Path(file.path), home, file.cluster, is_growing=True)


def _check_session(session: Session, file: GrowingFile, known: Continuation) -> None:
    """Raise ReadWholeError for a session that is another, or that is related to others."""
    if session.key != file.read_key or session.project != known.project:
        raise ReadWholeError("it is another session, or of another project")
    if Project(*file.project).evidence in ("none", "guessed"):
        raise ReadWholeError("later calls may name the project")
    if not session.timeline or not all(map(_is_independent, session.timeline)):
        raise ReadWholeError("it has copies, or calls that start subagents")


def _is_independent(entry: Entry) -> bool:
    parts: Sequence[Any] = entry.parts if isinstance(entry, Message) else ()
    starts_agent = any(
        isinstance(part, ToolCall) and part.canonical == "agent" and part.child is None for part in parts
    )
    return entry.own and not starts_agent

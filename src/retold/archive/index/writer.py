"""The text index for writing: a cache in separate files, which can be made again from the archive.

Conversation and output are separate tables: the first with positions of words, for phrases and ranking; the second, five times
as large, without. The index has no text, only words and regions of originals with the texts. Of long sessions it has the whole
timeline too, because a part of one could not be shown without reading all of the session; its texts are in the originals.
"""

from __future__ import annotations

import zlib
from itertools import chain, count

import apsw

from retold.archive.database import (
    MACHINE_ERRORS,
    DamagedError,
    IndexDamagedError,
    as_index_error,
    connect,
    empty_log,
)
from retold.archive.schema import INDEX_MARK, INDEX_STEPS
from retold.archive.store import (
    TOKENIZER_VERSION,
    as_text,
    compress,
    compress_with,
    digest,
)

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from retold.archive.index.documents import SearchDocument
    from retold.archive.index.tokenizer import IdentifierParts

    Execute = Callable[[str, Sequence[Any]], list[Any]]
    IndexPart = tuple[Sequence[tuple[SearchDocument, str]], Sequence[bytes]]
    """Documents with their regions, and pages that were filled with their texts."""


class TimelineChunk:
    """Consecutive entries of a timeline, packed, the seq of the first, and the texts of their documents."""

    __slots__ = ("data", "seq", "texts")

    def __init__(self, seq: int, data: bytes, texts: bytes = b"") -> None:
        self.seq, self.data, self.texts = seq, data, texts


class Timeline:
    """A long session for the index: the number of entries, the outline of what people said, and chunks, made when they are read."""

    __slots__ = ("chunks", "first", "outline", "total")

    def __init__(self, total: int, outline: bytes, chunks: Iterable[TimelineChunk], first: int = 0) -> None:
        self.total, self.outline, self.chunks = total, outline, chunks
        self.first = first
        """The seq from which on chunks are replaced."""


def write_timeline(execute: Execute, session: int, timeline: Timeline | None) -> None:
    """Write the timeline of a session; equal chunks, and those before its first one, are not written again."""
    if timeline is None:
        remove_timeline(execute, session)
        return
    sql = "SELECT seq, checksum FROM timeline_chunks WHERE session = ? AND seq >= ?"
    known = {seq: bytes(checksum) for seq, checksum in execute(sql, (session, timeline.first))}
    for chunk in timeline.chunks:
        checksum = digest(chunk.data)
        if known.pop(chunk.seq, None) != checksum:
            execute("DELETE FROM timeline_chunks WHERE session = ? AND seq = ?", (session, chunk.seq))
            row = (session, chunk.seq, checksum, compress_with(chunk.data, chunk.texts), bool(chunk.texts))
            execute("INSERT INTO timeline_chunks VALUES (NULL, ?, ?, ?, ?, ?)", row)
    for seq in known:
        execute("DELETE FROM timeline_chunks WHERE session = ? AND seq = ?", (session, seq))
    execute("DELETE FROM timelines WHERE session = ?", (session,))
    execute("INSERT INTO timelines VALUES (?, ?, ?)", (session, timeline.total, compress(timeline.outline)))


def remove_timeline(execute: Execute, session: int) -> None:
    """Remove the timeline of a session."""
    for table in ("timelines", "timeline_chunks"):
        execute(f"DELETE FROM {table} WHERE session = ?", (session,))  # noqa: S608 - ours


INDEX_ERRORS = (*MACHINE_ERRORS, apsw.SQLError)
"""Errors of the machine, or of a table that differs from what retold creates."""
_BEGIN_OF_SAID, _BEGIN_OF_OUTPUT = 2048, 256
"""How much of a text is searched for identifiers: most are in several texts."""
_BATCH_SIZE = 8 << 20
"""Characters that are given to FTS5 together."""
_HASH_SIZE = 12 << 20
"""FTS5's `hashsize`: with its default of 1 MB, the first sync takes twice as long."""
_MOST_LISTS, _LIST_LENGTH = 64, 2_000
"""Lists of identifiers after which a sync merges them, and the length of a merged one."""
_AUTOMERGE = 4
"""FTS5's own default, for syncs with few sessions."""


class IndexEntry:
    """A session for the index: documents with the regions of their texts, and pages with texts that are in no original.

    Documents and pages come in parts, so that few of a large session are in memory at a time.
    """

    __slots__ = ("first", "first_page", "is_placeholder", "originals", "parts", "stamp", "timeline", "uid")

    def __init__(  # noqa: PLR0913 - one for each thing that is kept
        self,
        uid: int,
        stamp: bytes,
        originals: Sequence[int],
        parts: Iterable[IndexPart] = (),
        timeline: Timeline | None = None,
        *,
        is_placeholder: bool = False,
        first: int = 0,
        first_page: int = 0,
    ) -> None:
        self.uid, self.stamp, self.parts, self.timeline = uid, stamp, parts, timeline
        self.first, self.first_page = first, first_page
        """The seq and the page from which on documents and pages are replaced."""
        self.is_placeholder = is_placeholder
        """Whether its texts cannot be read: it is written only if the session is not in the index."""
        self.originals = " ".join(f"{original:x}" for original in originals)


class IndexWriter:
    """Writes one file of the index."""

    def __init__(self, path: str, archive: str, *, is_bulk: bool = False) -> None:
        """Open a file of the index of an archive, by the archive's id; a bulk writer merges no segments."""
        self.path = path
        self._identifiers: IdentifierParts | None = None
        self._queue: list[tuple[int, SearchDocument, int, str]] = []
        """Documents to write, with session, checksum and regions."""
        self._queue_size = 0
        try:
            self._connection = connect(path, INDEX_MARK, INDEX_STEPS)
        except DamagedError as damage:
            raise IndexDamagedError(str(damage)) from damage
        # A power cut may lose the last commit, but none before it: a file with its generation has everything before it.
        self._execute("PRAGMA synchronous = NORMAL")
        self._execute("PRAGMA cache_size = -16000")
        self._check_archive(archive)
        for table in ("said", "output"):
            for option, value in (("hashsize", _HASH_SIZE), ("automerge", 0 if is_bulk else _AUTOMERGE)):
                self._execute(f"INSERT INTO {table} ({table}, rank) VALUES (?, ?)", (option, value))  # noqa: S608 - ours
        self._last_doc: int = self._value("SELECT coalesce(max(id), 0) FROM docs")
        self._last_entry: int = self._value("SELECT coalesce(max(id), 0) FROM entries")

    def _check_archive(self, archive: str) -> None:
        """Write the archive's id into a new file; raise IndexDamagedError for the file of another archive or another tokenizer."""
        if self._value("SELECT count(*) FROM facts") == 0:
            self._execute(
                "INSERT INTO facts VALUES ('archive', ?), ('words', ?)", (archive, TOKENIZER_VERSION)
            )
        elif self._value("SELECT value FROM facts WHERE name = 'archive'") != archive:
            raise IndexDamagedError(f"{self.path} is of another archive")
        elif self._value("SELECT value FROM facts WHERE name = 'words'") != TOKENIZER_VERSION:
            raise IndexDamagedError(f"{self.path} is of another version")

    def _execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            return list(self._connection.execute(sql, values))
        except INDEX_ERRORS as error:
            raise as_index_error(error, self.path) from error

    def _value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return next((row[0] for row in self._execute(sql, values)), None)

    def _execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        try:
            self._connection.executemany(sql, rows)
        except INDEX_ERRORS as error:
            raise as_index_error(error, self.path) from error

    def generation(self) -> int | None:
        """Return the number of the last sync that was completed."""
        found: int | None = self._value("SELECT value FROM facts WHERE name = 'generation'")
        return found

    def stamps(self) -> dict[int, bytes]:
        """Return the stamps of the sessions in this file, by uid."""
        return dict(self._execute("SELECT uid, stamp FROM entries"))

    @property
    def last(self) -> int:
        """A number that grows with the content of this file."""
        return self._last_doc + len(self._queue)

    def has_session(self, uid: int) -> bool:
        """Return whether a session is in this file."""
        return self._entry_id(uid) is not None

    def begin(self) -> None:
        """Begin a transaction, unless one is open."""
        if not self._connection.in_transaction:
            self._execute("BEGIN IMMEDIATE")

    def commit(self, generation: int | None = None) -> None:
        """Commit the transaction, with the number of the sync that it completes."""
        self._flush()
        if generation is not None:
            self.begin()
            if self._value("SELECT count(*) FROM identifier_lists") > _MOST_LISTS:
                self._merge_identifiers()
            self._execute("INSERT OR REPLACE INTO facts VALUES ('generation', ?)", (generation,))
        if self._connection.in_transaction:
            self._execute("COMMIT")

    def remove(self, uid: int) -> None:
        """Remove a session."""
        found = self._entry_id(uid)
        if found is not None:
            self._flush()
            self._remove_docs([number for number, *_ in self._load_docs(found)])
            self._execute("DELETE FROM pages WHERE session = ?", (found,))
            remove_timeline(self._execute, found)
            self._execute("DELETE FROM entries WHERE id = ?", (found,))

    def erase(self, uids: Sequence[int], kin: Sequence[int] = ()) -> bool:
        """Remove sessions with all bytes of their words; kin may name them, and lose their timelines.

        Return whether nothing is left. It can be repeated after an interruption at any point.
        """
        execute = self._execute
        execute("PRAGMA secure_delete = ON")
        self.begin()
        for relative in filter(None, map(self._entry_id, kin)):
            remove_timeline(execute, relative)
        for uid in uids:
            found = self._entry_id(uid)
            if found is not None:
                # Identifiers that other sessions have too are found by their parts again after a reindex.
                self._merge_identifiers(without=found)
            self.remove(uid)
        self.commit()
        for table in ("said", "output"):
            execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608 - ours
        execute("VACUUM")
        try:
            return empty_log(self._connection)
        except INDEX_ERRORS as error:
            raise as_index_error(error, self.path) from error

    def put(self, entry: IndexEntry) -> None:
        """Write a session; documents that stay the same are not written again."""
        execute, session = self._execute, self._entry_id(entry.uid)
        if entry.is_placeholder and session is not None:
            return
        known: dict[tuple[int, int | None], tuple[int, int, str]] = {}
        if session is None:
            self._last_entry = session = self._last_entry + 1
            row = (session, entry.uid, entry.stamp, entry.originals)
            execute("INSERT INTO entries VALUES (?, ?, ?, ?)", row)
        else:
            self._flush()  # maybe of this session
            # No REPLACE: a statement with a savepoint makes FTS5 write its hash.
            execute(
                "UPDATE entries SET stamp = ?, originals = ? WHERE id = ?",
                (entry.stamp, entry.originals, session),
            )
            known = {
                (seq, position): (number, checksum, regions)
                for number, seq, position, checksum, regions in self._load_docs(session, entry.first)
            }
        execute("DELETE FROM pages WHERE session = ? AND position >= ?", (session, entry.first_page))
        write_timeline(execute, session, entry.timeline)
        moved: list[tuple[str, int]] = []
        positions = count(entry.first_page)
        for docs, pages in entry.parts:
            for doc, regions in docs:
                before, checksum = known.pop((doc.seq, doc.position), None), _checksum(doc)
                if before is None or before[1] != checksum:
                    self._enqueue(session, doc, checksum, regions)
                    if before is not None:
                        known[doc.seq, doc.position] = before
                elif before[2] != regions:
                    moved.append((regions, before[0]))
            for page in pages:
                execute("INSERT INTO pages VALUES (?, ?, ?)", (session, next(positions), page))
        self._execute_many("UPDATE docs SET regions = ? WHERE id = ?", moved)
        self._remove_docs([number for number, *_ in known.values()])

    def _entry_id(self, uid: int) -> int | None:
        found: int | None = self._value("SELECT id FROM entries WHERE uid = ?", (uid,))
        return found

    def _load_docs(self, session: int, first: int = 0) -> list[tuple[int, int, int | None, int, str]]:
        """Return the documents of the entries from a seq on, and of the summary."""
        sql = "SELECT id, seq, position, checksum, regions FROM docs WHERE session = ?1 AND (seq >= ?2 OR seq < 0)"
        return self._execute(sql, (session, first))

    def growth_of(self, uid: int, stamp: bytes) -> tuple[int, str] | None:
        """Return how many pages a session has, and its originals; None if this file does not have it with this stamp."""
        sql = (
            "SELECT (SELECT coalesce(max(position) + 1, 0) FROM pages WHERE session = entries.id), originals FROM entries"
            " WHERE uid = ? AND stamp = ?"
        )
        return next(iter(self._execute(sql, (uid, stamp))), None)

    def _remove_docs(self, numbers: Sequence[int]) -> None:
        ids = [(number,) for number in numbers]
        for sql in (
            "DELETE FROM said WHERE rowid = ?",
            "DELETE FROM output WHERE rowid = ?",
            "DELETE FROM docs WHERE id = ?",
        ):
            self._execute_many(sql, ids)

    def _enqueue(self, session: int, doc: SearchDocument, checksum: int, regions: str) -> None:
        """Queue a document: FTS5 is half as fast if other statements come between its rows."""
        self._queue.append((session, doc, checksum, regions))
        self._queue_size += sum(map(len, chain(doc.human, doc.agent, doc.output)))
        if self._queue_size > _BATCH_SIZE:
            self._flush()

    def _flush(self) -> None:
        """Write the queued documents."""
        if not self._queue:
            return
        from retold.archive.index.tokenizer import IdentifierParts, prepare_text

        docs, self._queue, self._queue_size = self._queue, [], 0
        rows, said, output = [], [], []
        begins: list[bytes] = []
        owners: list[int] = []
        for session, doc, checksum, regions in docs:
            self._last_doc += 1
            rows.append((self._last_doc, session, doc.seq, doc.position, checksum, regions))
            if doc.human or doc.agent:
                human, agent = as_text("\n".join(doc.human)), as_text("\n".join(doc.agent))
                begins += (human[:_BEGIN_OF_SAID].encode(), agent[:_BEGIN_OF_SAID].encode())
                owners += (session, session)
                said.append((self._last_doc, prepare_text(human), prepare_text(agent)))
            if doc.output:
                text = as_text("\n".join(doc.output))
                begins.append(text[:_BEGIN_OF_OUTPUT].encode())
                owners.append(session)
                output.append((self._last_doc, prepare_text(text)))
        finder = self._identifiers = self._identifiers or IdentifierParts()
        identifiers = [f"{name} {owners[number]:x}" for name, number in finder.find_new(begins)]
        # Other statements make FTS5 write its hash: its rows come last, and by table.
        self._execute_many("INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?)", rows)
        if identifiers:
            self._add_identifiers(identifiers)
        self._execute_many("INSERT INTO said (rowid, human, agent) VALUES (?, ?, ?)", said)
        self._execute_many("INSERT INTO output (rowid, text) VALUES (?, ?)", output)

    def _add_identifiers(self, lines: Sequence[str]) -> None:
        self._execute("INSERT INTO identifier_lists (lines) VALUES (?)", ("\n".join(lines),))

    def _merge_identifiers(self, without: int | None = None) -> None:
        """Merge the lists of identifiers, each identifier once, without those that were met first in a session."""
        lists = self._execute("SELECT lines FROM identifier_lists ORDER BY id")
        firsts: dict[str, str] = {}
        for line in [line for (lines,) in lists for line in lines.split("\n")]:
            firsts.setdefault(line.partition(" ")[0], line)
        owner = "" if without is None else f" {without:x}"
        lines = [line for line in firsts.values() if not owner or not line.endswith(owner)]
        self._execute("DELETE FROM identifier_lists")
        for start in range(0, len(lines), _LIST_LENGTH):
            self._add_identifiers(lines[start : start + _LIST_LENGTH])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _checksum(doc: SearchDocument) -> int:
    """Return a checksum of the texts of a document."""
    checksum = 0
    for texts in (doc.human, doc.agent, doc.output):
        for text in texts:
            checksum = zlib.crc32(text.encode("utf-8", "replace"), checksum)
        checksum = zlib.crc32(b"\0", checksum)
    return checksum

"""The text index: a cache in files of its own, which everything in the archive can be put into again.

Conversation and output stand in tables of their own: the first with the places of words, for phrases and ranking; the
second, five times as large, without. No text is kept: only words, and where in the originals the text stands. Long
sessions alone are kept as they are told, too: to show a part of one, all of it would have to be read.
"""

from __future__ import annotations

import os
import zlib
from itertools import chain

import apsw

from retold.archive.database import (
    MACHINE,
    PATIENCE,
    DamagedError,
    IndexDamagedError,
    connected,
    connection_to,
    index_trouble,
    is_log_emptied,
)
from retold.archive.index.files import SHARDS, WORDS, shard_path
from retold.archive.store import as_text, digest, packed, unpacked

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Self

    from retold.archive.index.documents import SearchDocument
    from retold.archive.index.tokenizer import IdentifierParts

    Ask = Callable[[str, Sequence[Any]], list[Any]]


STEP = """
-- Sessions that are long, as their files tell them; what they are to others, only the record knows.
CREATE TABLE timelines (
    session INTEGER PRIMARY KEY, -- as in told
    total INTEGER NOT NULL,     -- entries
    outline BLOB NOT NULL       -- what people said, zstd
);
CREATE TABLE stretches (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    place INTEGER NOT NULL,     -- of its first entry in the timeline
    messages INTEGER NOT NULL,  -- among the entries before it
    seal BLOB NOT NULL,         -- to know an unchanged stretch again
    packed BLOB NOT NULL        -- zstd
);
CREATE UNIQUE INDEX session_stretches ON stretches (session, place);
"""
WITHOUT_MESSAGES = "ALTER TABLE stretches DROP COLUMN messages"
_KEPT = """
SELECT told.id, total, outline FROM told JOIN timelines ON timelines.session = told.id WHERE name = ? AND stamp = ?
"""
_FROM = """
SELECT place, packed FROM stretches WHERE session = ?1 AND place >=
    (SELECT max(place) FROM stretches WHERE session = ?1 AND place <= ?2) ORDER BY place
"""

_LEVEL = 1
"""Of zstd: half the time of the originals' level, a fifth more room."""


class TimelineChunk:
    """Entries that follow each other, packed, and where they begin."""

    __slots__ = ("data", "place")

    def __init__(self, place: int, data: bytes) -> None:
        self.place, self.data = place, data


class Timeline:
    """A long session as the index takes it: how many entries, what people said, and its stretches, made when asked for."""

    __slots__ = ("outline", "stretches", "total")

    def __init__(self, total: int, outline: bytes, stretches: Iterable[TimelineChunk]) -> None:
        self.total, self.outline, self.stretches = total, outline, stretches


def put_timeline(ask: Ask, session: int, timeline: Timeline | None) -> None:
    """Keep the timeline of a session; stretches that are as they were are not written again."""
    if timeline is None:
        remove_timeline(ask, session)
        return
    known = {
        place: bytes(sealed)
        for place, sealed in ask("SELECT place, seal FROM stretches WHERE session = ?", (session,))
    }
    for stretch in timeline.stretches:
        sealed = digest(stretch.data)
        if known.get(stretch.place) != sealed:
            ask("DELETE FROM stretches WHERE session = ? AND place = ?", (session, stretch.place))
            row = (session, stretch.place, sealed, packed(stretch.data, _LEVEL))
            ask("INSERT INTO stretches VALUES (NULL, ?, ?, ?, ?)", row)
        known.pop(stretch.place, None)
    for place in known:
        ask("DELETE FROM stretches WHERE session = ? AND place = ?", (session, place))
    ask("DELETE FROM timelines WHERE session = ?", (session,))
    ask("INSERT INTO timelines VALUES (?, ?, ?)", (session, timeline.total, packed(timeline.outline)))


def remove_timeline(ask: Ask, session: int) -> None:
    """Take the timeline of a session out."""
    for table in ("timelines", "stretches"):
        ask(f"DELETE FROM {table} WHERE session = ?", (session,))  # noqa: S608 - ours


class KeptTimeline:
    """The timeline of a session, as of one moment; raises Damaged for what is not as we wrote it."""

    def __init__(self, connection: apsw.Connection, session: int, total: int, outline: bytes) -> None:
        self._connection, self._session, self.total, self._outline = connection, session, total, outline

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def outline(self) -> bytes:
        """Return what people said."""
        return unpacked(self._outline)

    def stretches(self, first: int) -> Iterator[TimelineChunk]:
        """Yield the stretch in which an entry is, and those that follow."""
        try:
            for place, data in self._connection.execute(_FROM, (self._session, first)):
                yield TimelineChunk(place, unpacked(data))
        except apsw.Error as error:
            raise IndexDamagedError(f"a stretch of a timeline cannot be read ({error})") from error


def kept_timeline(folder: str, name: int, stamp: bytes) -> KeptTimeline | None:
    """Open the timeline of a session, made from what the record knows it by; None if there is none."""
    for number in range(SHARDS):
        path = shard_path(folder, number)
        found = _opened(path, name, stamp) if os.path.exists(path) else None
        if found is not None:
            return found
    return None


def _opened(path: str, name: int, stamp: bytes) -> KeptTimeline | None:
    try:
        connection = connection_to(path)
    except apsw.Error:  # where nobody may write
        return None
    try:
        connection.set_busy_timeout(PATIENCE)
        # The file may be made anew meanwhile: whoever closes the old one must not tidy up beside the new.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.execute("PRAGMA query_only = 1; BEGIN")
        row = connection.execute(_KEPT, (name, stamp)).fetchone()
    except apsw.Error:  # damaged, or made before there were timelines
        row = None
    if row is None:
        connection.close()
        return None
    return KeptTimeline(connection, *row)


TROUBLES = (*MACHINE, apsw.SQLError)
"""What SQLite says where the machine stops it, or a table is not as we made it."""
MARK = 0x72657478
_WORDS = 'tokenize = "unicode61 remove_diacritics 2"'
STEPS = (
    f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
-- The sessions in this file, by their name in the archive, each as it was when it was put in.
CREATE TABLE told (
    id INTEGER PRIMARY KEY,
    name INTEGER NOT NULL UNIQUE,
    stamp BLOB NOT NULL,
    originals TEXT NOT NULL     -- the names of those that regions lie in
);
CREATE TABLE docs (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,       -- of the message; -1 for what is said about the session as a whole
    place INTEGER,              -- of the call whose output this is
    seal INTEGER NOT NULL,      -- to know an unchanged document again
    regions TEXT NOT NULL       -- where its texts stand
);
CREATE INDEX session_docs ON docs (session, seq);
CREATE TABLE pages (
    session INTEGER NOT NULL,
    place INTEGER NOT NULL,
    packed BLOB NOT NULL,
    PRIMARY KEY (session, place)
) WITHOUT ROWID;
-- Names with humps, as `timeZone`, by whose parts texts can be found as well.
CREATE TABLE names (name TEXT PRIMARY KEY, session INTEGER NOT NULL) WITHOUT ROWID; -- where it was met first
CREATE VIRTUAL TABLE said USING fts5(
    human, agent, content = '', contentless_delete = 1, detail = full, {_WORDS}
);
CREATE VIRTUAL TABLE output USING fts5(
    text, content = '', contentless_delete = 1, detail = none, {_WORDS}
);
""",
    STEP,
    WITHOUT_MESSAGES,
)
_BEGIN_OF_SAID, _BEGIN_OF_OUTPUT = 2048, 256
"""How much of a text is looked through for names: most stand in several texts."""
_AT_ONCE = 8 << 20
"""Characters that are handed to FTS5 together."""
_HASH = 12 << 20
"""How much FTS5 gathers before it writes: its own default of 1 MB makes the first sync twice as long."""
_MERGE = 4
"""FTS5's own default for how many parts of an index are merged into one, as syncs bring few sessions each."""


class IndexEntry:
    """A session as the index takes it: documents with where they stand, and packed pages for what stands nowhere."""

    __slots__ = ("docs", "is_placeholder", "name", "originals", "pages", "stamp", "timeline")

    def __init__(  # noqa: PLR0913 - one for each thing that is kept
        self,
        name: int,
        stamp: bytes,
        originals: Sequence[int],
        docs: Sequence[tuple[SearchDocument, str]],
        pages: Sequence[bytes],
        timeline: Timeline | None = None,
        *,
        is_placeholder: bool = False,
    ) -> None:
        self.name, self.stamp, self.docs, self.pages, self.timeline = name, stamp, docs, pages, timeline
        self.is_placeholder = is_placeholder
        """Whether its texts cannot be read: it is put in only where the session is not in the index."""
        self.originals = " ".join(f"{original:x}" for original in originals)


class IndexWriter:
    """One file of the index, as its writer sees it."""

    def __init__(self, path: str, archive: str, *, is_bulk: bool = False) -> None:
        """Open a file of the index of an archive, by the archive's id; for many sessions, parts are not merged on the way."""
        self.path = path
        self._names: IdentifierParts | None = None
        self._waiting: list[tuple[int, SearchDocument, int, str]] = []
        """Documents that are to be put in, with their session, seal and regions."""
        self._waiting_size = 0
        try:
            self._connection = connected(path, MARK, STEPS)
        except DamagedError as damage:
            raise IndexDamagedError(str(damage)) from damage
        # A commit may be lost in a power cut, but none before it: a file that has its generation has all that it claims.
        self._ask("PRAGMA synchronous = NORMAL")
        self._ask("PRAGMA cache_size = -16000")
        self._see_that_it_is_of(archive)
        for table in ("said", "output"):
            for option, value in (("hashsize", _HASH), ("automerge", 0 if is_bulk else _MERGE)):
                self._ask(f"INSERT INTO {table} ({table}, rank) VALUES (?, ?)", (option, value))  # noqa: S608 - ours
        self._last_doc: int = self._one("SELECT coalesce(max(id), 0) FROM docs")
        self._last: int = self._one("SELECT coalesce(max(id), 0) FROM told")

    def _see_that_it_is_of(self, archive: str) -> None:
        """Let a new file carry the id of its archive; raises IndexDamaged for another archive, or for words of another version."""
        if self._one("SELECT count(*) FROM facts") == 0:
            self._ask("INSERT INTO facts VALUES ('archive', ?), ('words', ?)", (archive, WORDS))
        elif self._one("SELECT value FROM facts WHERE name = 'archive'") != archive:
            raise IndexDamagedError(f"{self.path} is of another archive")
        elif self._one("SELECT value FROM facts WHERE name = 'words'") != WORDS:
            raise IndexDamagedError(f"{self.path} is of another version")

    def _ask(self, asked: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            return list(self._connection.execute(asked, values))
        except TROUBLES as error:
            raise index_trouble(error, self.path) from error

    def _one(self, asked: str, values: Sequence[Any] = ()) -> Any:
        return next((row[0] for row in self._ask(asked, values)), None)

    def _many(self, asked: str, rows: Sequence[Sequence[Any]]) -> None:
        try:
            self._connection.executemany(asked, rows)
        except TROUBLES as error:
            raise index_trouble(error, self.path) from error

    def generation(self) -> int | None:
        """Return the number of the last sync that was completed."""
        found: int | None = self._one("SELECT value FROM facts WHERE name = 'generation'")
        return found

    def stamps(self) -> dict[int, bytes]:
        """Return the sessions in this file, each with what it was made from."""
        return dict(self._ask("SELECT name, stamp FROM told"))

    @property
    def last(self) -> int:
        """A number that grows with what is in this file."""
        return self._last_doc + len(self._waiting)

    def holds(self, name: int) -> bool:
        """Tell whether a session is in this file."""
        return self._id_of(name) is not None

    def begin(self) -> None:
        """Begin to write, if it was not begun."""
        if not self._connection.in_transaction:
            self._ask("BEGIN IMMEDIATE")

    def commit(self, generation: int | None = None) -> None:
        """Make what was written be seen; with the number of the sync that it completes."""
        self._put_waiting()
        if generation is not None:
            self.begin()
            self._ask("INSERT OR REPLACE INTO facts VALUES ('generation', ?)", (generation,))
        if self._connection.in_transaction:
            self._ask("COMMIT")

    def remove(self, name: int) -> None:
        """Take a session out."""
        found = self._id_of(name)
        if found is not None:
            self._put_waiting()
            self._remove_docs([number for number, *_ in self._docs(found)])
            self._ask("DELETE FROM pages WHERE session = ?", (found,))
            remove_timeline(self._ask, found)
            self._ask("DELETE FROM told WHERE id = ?", (found,))

    def erase(self, names: Sequence[int], kin: Sequence[int] = ()) -> bool:
        """Take sessions out so that no word of theirs is left in the file; those that are kin may name them as theirs.

        Tell whether nothing is left. It may be done again, also where it was stopped at any point.
        """
        ask = self._ask
        ask("PRAGMA secure_delete = ON")
        self.begin()
        for relative in filter(None, map(self._id_of, kin)):
            remove_timeline(ask, relative)
        for name in names:
            found = self._id_of(name)
            # Names that others have as well are found by their parts again when the index is made anew.
            ask("DELETE FROM names WHERE session = ?", (found,))
            self.remove(name)
        self.commit()
        for table in ("said", "output"):
            ask(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608 - ours
        ask("VACUUM")
        try:
            return is_log_emptied(self._connection)
        except TROUBLES as error:
            raise index_trouble(error, self.path) from error

    def put(self, entry: IndexEntry) -> None:
        """Put a session in; what was said in it before, and stays the same, is not touched."""
        ask, session = self._ask, self._id_of(entry.name)
        if entry.is_placeholder and session is not None:
            return
        known: dict[tuple[int, int | None], tuple[int, int, str]] = {}
        if session is None:
            self._last = session = self._last + 1
            ask("INSERT INTO told VALUES (?, ?, ?, ?)", (session, entry.name, entry.stamp, entry.originals))
        else:
            self._put_waiting()  # of this session, maybe
            # No REPLACE: what needs a savepoint makes FTS5 write all that it has gathered.
            ask(
                "UPDATE told SET stamp = ?, originals = ? WHERE id = ?",
                (entry.stamp, entry.originals, session),
            )
            known = {
                (seq, place): (number, sealed, regions)
                for number, seq, place, sealed, regions in self._docs(session)
            }
        new: list[tuple[SearchDocument, int, str]] = []
        moved: list[tuple[str, int]] = []
        for doc, regions in entry.docs:
            before, sealed = known.pop((doc.seq, doc.place), None), _seal(doc)
            if before is None or before[1] != sealed:
                new.append((doc, sealed, regions))
                if before is not None:
                    known[doc.seq, doc.place] = before
            elif before[2] != regions:
                moved.append((regions, before[0]))
        ask("DELETE FROM pages WHERE session = ?", (session,))
        pages = [(session, place, page) for place, page in enumerate(entry.pages)]
        self._many("INSERT INTO pages VALUES (?, ?, ?)", pages)
        self._many("UPDATE docs SET regions = ? WHERE id = ?", moved)
        self._remove_docs([number for number, *_ in known.values()])
        put_timeline(ask, session, entry.timeline)
        for doc, sealed, regions in new:
            self._wait(session, doc, sealed, regions)

    def _id_of(self, name: int) -> int | None:
        found: int | None = self._one("SELECT id FROM told WHERE name = ?", (name,))
        return found

    def _docs(self, session: int) -> list[tuple[int, int, int | None, int, str]]:
        asked = "SELECT id, seq, place, seal, regions FROM docs WHERE session = ?"
        return self._ask(asked, (session,))

    def _remove_docs(self, numbers: Sequence[int]) -> None:
        ids = [(number,) for number in numbers]
        for asked in (
            "DELETE FROM said WHERE rowid = ?",
            "DELETE FROM output WHERE rowid = ?",
            "DELETE FROM docs WHERE id = ?",
        ):
            self._many(asked, ids)

    def _wait(self, session: int, doc: SearchDocument, sealed: int, regions: str) -> None:
        """Let a document wait for others: FTS5 is half as fast if other work comes between its rows."""
        self._waiting.append((session, doc, sealed, regions))
        self._waiting_size += sum(map(len, chain(doc.human, doc.agent, doc.output)))
        if self._waiting_size > _AT_ONCE:
            self._put_waiting()

    def _put_waiting(self) -> None:
        """Put in the documents that wait."""
        if not self._waiting:
            return
        from retold.archive.index.tokenizer import IdentifierParts, spread

        docs, self._waiting, self._waiting_size = self._waiting, [], 0
        rows, said, output = [], [], []
        finder = self._names = self._names or IdentifierParts()
        names: list[tuple[str, int]] = []
        for session, doc, sealed, regions in docs:
            self._last_doc += 1
            rows.append((self._last_doc, session, doc.seq, doc.place, sealed, regions))
            if doc.human or doc.agent:
                human, agent = as_text("\n".join(doc.human)), as_text("\n".join(doc.agent))
                new = finder.new_in(human[:_BEGIN_OF_SAID]) | finder.new_in(agent[:_BEGIN_OF_SAID])
                names += [(name, session) for name in new]
                said.append((self._last_doc, spread(human), spread(agent)))
            if doc.output:
                text = as_text("\n".join(doc.output))
                names += [(name, session) for name in finder.new_in(text[:_BEGIN_OF_OUTPUT])]
                output.append((self._last_doc, spread(text)))
        # Other statements make FTS5 write what it has gathered: all of its rows come last, and by table.
        self._many("INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?)", rows)
        self._many("INSERT OR IGNORE INTO names VALUES (?, ?)", names)
        self._many("INSERT INTO said (rowid, human, agent) VALUES (?, ?, ?)", said)
        self._many("INSERT INTO output (rowid, text) VALUES (?, ?)", output)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


def _seal(doc: SearchDocument) -> int:
    """Return a number that changes with the texts of a document."""
    sealed = 0
    for texts in (doc.human, doc.agent, doc.output):
        for text in texts:
            sealed = zlib.crc32(text.encode("utf-8", "replace"), sealed)
        sealed = zlib.crc32(b"\0", sealed)
    return sealed

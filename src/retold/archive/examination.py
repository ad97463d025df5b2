"""The examination of an archive: pages, tables, values, pieces and chunks that are not what was written."""

from __future__ import annotations

import json
from math import gcd
from typing import NamedTuple

import apsw

from retold.archive.database import DamagedError, RetoldError, take_steps
from retold.archive.schema import STEPS
from retold.archive.store import Store, as_path, digest, exists, summary_of
from retold.reading.disk import printable

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

MOST = 64 << 20
"""Packed bytes of chunks that one look unpacks: a few tenths of a second."""
_WEEK = 7
_FAULTS = 5
"""Faults of structure that SQLite names before it stops."""
_LARGE = ("messages", "tool_calls", "requests", "spent", "used", "worked", "files", "answers", "pieces")
"""Tables with a row for each message or more: only a full examination reads their values."""
_JSON = {"sessions": "usage", "sources": "refusal", "rates": "told"}
_TYPES = {"INTEGER": "integer", "TEXT": "text", "BLOB": "blob"}
_SAME = ("key", "agent", "native_id", "kind", "parent", "title", "started_at", "ended_at", "status")
"""What the row of a session and its JSON form both say."""
_CHUNK_OWNERS = """
SELECT originals.id FROM pieces JOIN originals ON originals.id = original WHERE chunk = ?
"""
_UNPIECED = (
    "SELECT DISTINCT original FROM pieces WHERE NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.id = chunk)"
)
_MISSIZED = """
SELECT originals.id FROM originals LEFT JOIN pieces ON original = originals.id LEFT JOIN chunks ON chunks.id = chunk
GROUP BY originals.id HAVING coalesce(sum(chunks.size), 0) <> originals.size OR count(place) <> coalesce(max(place) + 1, 0)
"""
_ROWLESS = "SELECT packed FROM summaries WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = summaries.session)"
_SOURCELESS = """
SELECT CAST(key AS BLOB) FROM sessions WHERE NOT EXISTS (SELECT 1 FROM session_sources WHERE session = sessions.id)
"""
_UNPLACED = """
SELECT DISTINCT id, CAST(key AS BLOB), packed FROM session_sources JOIN sessions ON sessions.id = session_sources.session
LEFT JOIN summaries ON summaries.session = id WHERE NOT EXISTS (SELECT 1 FROM sources WHERE sources.id = source)
"""
_UNKEPT = """
SELECT sessions.id, CAST(key AS BLOB), path, home FROM session_sources JOIN sessions ON sessions.id = session
JOIN sources ON sources.id = source
WHERE NOT is_there AND NOT EXISTS (SELECT 1 FROM originals WHERE originals.source = sources.id)
"""
_ORPHANS = """
SELECT count(DISTINCT original) FROM pieces WHERE NOT EXISTS (SELECT 1 FROM originals WHERE originals.id = original)
"""
_COUNTED = """
SELECT CAST(key AS BLOB), packed,
    (SELECT count(*) FROM messages WHERE messages.session = sessions.id AND NOT is_event),
    (SELECT count(*) FROM tool_calls WHERE tool_calls.session = sessions.id),
    (SELECT count(*) FROM requests WHERE requests.session = sessions.id AND own)
FROM sessions JOIN summaries ON summaries.session = id
"""
_COUNTS = ("messages", "tool calls", "requests")
_PATH = """
SELECT path, home, is_there AND is_latest = 1, source FROM originals JOIN sources ON sources.id = source WHERE originals.id = ?
"""
_KEYS = "SELECT session, CAST(key AS BLOB) FROM session_sources JOIN sessions ON sessions.id = session WHERE source = ?"
_OTHERS = """
SELECT count(*) FROM originals JOIN session_sources USING (source) WHERE session = ? AND originals.id IS NOT ?
"""


class DamagedOriginal(NamedTuple):
    """What is damaged of one file that was kept, and what is still there."""

    path: str
    home: str
    is_live: bool
    """Whether the agent still has the file as it was kept."""
    other_originals: int
    """Kept files of the same session that are not this one."""


class Fault(NamedTuple):
    """One thing that is not what was written."""

    text: str
    session: str | None = None
    """The key of the session that it concerns."""
    original: DamagedOriginal | None = None


def examine(record: Store, *, is_full: bool = False, day: int = 0, most: int = MOST) -> Iterator[Fault]:
    """Yield what is damaged; unless all is asked for, a part of the chunks, another one each day."""
    looks = (
        _structure(record, is_full=is_full),
        _schema(record),
        _values(record, is_full=is_full),
        _summaries(record),
        _relations(record, is_full=is_full),
        _pieces(record),
        _chunks(record, None if is_full else most, day),
    )
    for faults in looks:
        yield from _guarded(faults, record)


def damage(folder: str) -> str | None:
    """Return what a full examination finds first, in a sentence; None if the archive is whole, or there is none."""
    return _first(folder, lambda record: examine(record, is_full=True))


def damage_of_tables(folder: str) -> str | None:
    """Return whether a table is not as retold makes it: this takes milliseconds."""
    return _first(folder, lambda record: _guarded(_schema(record), record))


def _first(folder: str, look: Callable[[Store], Iterator[Fault]]) -> str | None:
    try:
        if not exists(folder):
            return None
        record = Store(folder)
    except (RetoldError, OSError) as error:
        return str(error)
    try:
        fault = next(look(record), None)
    except RetoldError as error:
        return str(error)
    finally:
        record.connection.close()
    if fault is None:
        return None
    about = "" if fault.session is None else f" of {fault.session}"
    return f"{record.path} is damaged: {fault.text}{about}; `retold doctor --full` says what is still there"


def _guarded(faults: Iterator[Fault], record: Store) -> Iterator[Fault]:
    """Yield faults; damage that stops one look is a fault itself."""
    try:
        yield from faults
    except (DamagedError, apsw.SQLError, apsw.TooBigError, UnicodeDecodeError) as error:
        yield Fault(f"{error}" if isinstance(error, DamagedError) else f"{record.path}: {error}")


def _structure(record: Store, *, is_full: bool) -> Iterator[Fault]:
    check = "integrity_check" if is_full else "quick_check"
    for (told,) in record.rows(f"PRAGMA {check}({_FAULTS})"):
        if told != "ok":
            yield Fault(f"{record.path}: {told}")


def _schema(record: Store) -> Iterator[Fault]:
    asked = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
    found = dict(record.rows(asked))
    for name, sql in _model().execute(asked):
        if found.get(name) != sql:
            yield Fault(f"{record.path}: {name} is {'changed' if name in found else 'missing'}")


def _model() -> apsw.Connection:
    model = apsw.Connection(":memory:")
    take_steps(model, STEPS)
    return model


def _values(record: Store, *, is_full: bool) -> Iterator[Fault]:
    """Yield values of another type than their column, and text that is no text."""
    model = _model()
    for (table,) in model.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"):
        if table == "chunks" or (table in _LARGE and not is_full):
            continue
        columns = {
            name: (kind, is_needed or is_key)
            for _, name, kind, is_needed, _, is_key in model.execute(f"PRAGMA table_info({table})")
        }
        yield from _guarded(_values_of(record, table, columns), record)


def _values_of(record: Store, table: str, columns: dict[str, tuple[str, int]]) -> Iterator[Fault]:
    owner = next(
        (
            name
            for name in ("session", "id")
            if name in columns and (name == "session" or table == "sessions")
        ),
        "NULL",
    )
    for name, (kind, is_needed) in columns.items():
        if kind in _TYPES:
            allowed = f"'{_TYPES[kind]}'" if is_needed else f"'{_TYPES[kind]}', 'null'"
            asked = f"SELECT DISTINCT {owner} FROM {table} WHERE typeof({name}) NOT IN ({allowed})"  # noqa: S608 - fixed names
            for (session,) in list(record.rows(asked)):
                yield Fault(f"a value in {table}.{name} is no {kind}", _key(record, session))
    texts = [name for name, (kind, _) in columns.items() if kind == "TEXT"]
    try:
        for _ in record.rows(f"SELECT {', '.join(texts) or 1} FROM {table}"):  # noqa: S608 - the same
            pass
    except UnicodeDecodeError:
        yield from _no_texts(record, table, owner, texts)
    if table in _JSON:
        yield from _no_json(record, table, owner, _JSON[table])


def _no_texts(record: Store, table: str, owner: str, texts: list[str]) -> Iterator[Fault]:
    raw = ", ".join(f"CAST({name} AS BLOB)" for name in texts)
    for session, *values in record.rows(f"SELECT {owner}, {raw} FROM {table}"):  # noqa: S608 - the same
        for name, value in zip(texts, values, strict=True):
            if value is not None and not _is_text(value):
                yield Fault(f"a text in {table}.{name} is not UTF-8", _key(record, session))


def _no_json(record: Store, table: str, owner: str, column: str) -> Iterator[Fault]:
    asked = f"SELECT {owner}, CAST({column} AS BLOB) FROM {table} WHERE {column} IS NOT NULL"  # noqa: S608 - the same
    for session, value in record.rows(asked):
        try:
            is_object = isinstance(json.loads(value), dict)
        except ValueError:
            is_object = False
        if not is_object:
            yield Fault(f"a value in {table}.{column} is no JSON object", _key(record, session))


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _key(record: Store, session: Any) -> str | None:
    found = record.row("SELECT CAST(key AS BLOB) FROM sessions WHERE id = ?", (session,))
    return None if found is None else found[0].decode("utf-8", "replace")


def _summaries(record: Store) -> Iterator[Fault]:
    """Yield sessions whose JSON form is missing, cannot be read, or says something else than their row."""
    columns = ", ".join(f"CAST({name} AS BLOB)" for name in _SAME)
    asked = f"SELECT packed, {columns} FROM sessions LEFT JOIN summaries ON session = id"  # noqa: S608 - the same
    for packed, *values in record.rows(asked):
        texts = [value if value is None else value.decode("utf-8", "replace") for value in values]
        told = _summary(packed)
        if told is None:
            yield Fault("the summary cannot be read", texts[0])
        elif [told.get(name) for name in _SAME] != texts:
            yield Fault("the row and the summary differ", texts[0])


def _relations(record: Store, *, is_full: bool) -> Iterator[Fault]:
    """Yield sessions and originals of which some rows are there and others are missing."""
    for (packed,) in record.rows(_ROWLESS):
        told = _summary(packed)
        yield Fault("the row of a session is missing", None if told is None else told.get("key"))
    for (key,) in record.rows(_SOURCELESS):
        yield Fault("the rows of its files are missing", key.decode("utf-8", "replace"))
    yield from _lost_files(record)
    for (count,) in record.rows(_ORPHANS):
        if count:
            yield Fault(f"{record.path}: rows of kept files are missing: {count}")
    for key, packed, *counted in record.rows(_COUNTED) if is_full else ():
        told = _summary(packed) or {}
        counts, usage = told.get("counts"), told.get("usage")
        if isinstance(counts, dict) and isinstance(usage, dict):
            wanted = counts.get("messages"), counts.get("tool_calls"), usage.get("requests")
            for name, one, count in zip(_COUNTS, wanted, counted, strict=True):
                if one != count:
                    yield Fault(f"rows of its {name} are missing", key.decode("utf-8", "replace"))


def _lost_files(record: Store) -> Iterator[Fault]:
    """Yield sessions with a file that the archive no longer knows, or of which it no longer has anything."""
    for session, key, packed in list(record.rows(_UNPLACED)):
        told = (_summary(packed) or {}).get("sources")
        paths = [one.get("path") for one in told or () if isinstance(one, dict)]
        known = {printable(as_path(path)) for (path,) in record.rows("SELECT path FROM sources")}
        lost = next((path for path in paths if isinstance(path, str) and path not in known), "a file")
        yield _of_lost(record, session, key, lost, "")
    for session, key, path, home in list(record.rows(_UNKEPT)):
        yield _of_lost(record, session, key, as_path(path), as_path(home))


def _of_lost(record: Store, session: int, key: bytes, path: str, home: str) -> Fault:
    (others,) = record.row(_OTHERS, (session, None)) or (0,)
    kept = DamagedOriginal(path, home, is_live=False, other_originals=others)
    return Fault("all rows are missing", key.decode("utf-8", "replace"), kept)


def _summary(packed: Any) -> dict[str, Any] | None:
    try:
        told = json.loads(summary_of(packed))
    except (DamagedError, TypeError, ValueError):
        return None
    return told if isinstance(told, dict) else None


def _pieces(record: Store) -> Iterator[Fault]:
    """Yield the originals that are not made of all their chunks."""
    lacking = {original for (original,) in record.rows(_UNPIECED)}
    for original in sorted(lacking):
        yield from _of_original(record, original, "a chunk is missing")
    for (original,) in list(record.rows(_MISSIZED)):
        if original not in lacking:
            yield from _of_original(record, original, "the sizes of the chunks do not add up")


def _parts(record: Store, most: int) -> int:
    """Return into how many parts chunks are divided; days and weeks both go round all of them."""
    (size,) = record.row("SELECT coalesce(sum(length(packed)), 0) FROM chunks") or (0,)
    count: int = max(1, -(-size // most))
    return count if gcd(count, _WEEK) == 1 else count + 1


def _chunks(record: Store, most: int | None, day: int) -> Iterator[Fault]:
    """Yield the originals of chunks that do not unpack to what their digest and size say; of one part, or of all."""
    parts = 1 if most is None else _parts(record, most)
    for (number,) in list(record.rows("SELECT id FROM chunks WHERE id % ? = ?", (parts, day % parts))):
        told = _chunk_fault(record, number)
        if told is None:
            continue
        owners = [original for (original,) in record.rows(_CHUNK_OWNERS, (number,))]
        for original in owners:
            yield from _of_original(record, original, told)
        if not owners:
            yield Fault(f"{told}; no kept file uses it")


def _chunk_fault(record: Store, number: int) -> str | None:
    try:
        named, size, packed = record.row(
            "SELECT digest, size, packed FROM chunks WHERE id = ?", (number,)
        ) or (b"", 0, b"")
        data = record.originals.unpacked(bytes(packed))
        is_whole = len(data) == size and digest(data) == bytes(named)
    except (DamagedError, TypeError, UnicodeDecodeError):
        is_whole = False
    return None if is_whole else f"chunk {number} is damaged"


def _of_original(record: Store, original: int, text: str) -> Iterator[Fault]:
    """Yield a fault of an original for each session that was read from it."""
    found = record.row(_PATH, (original,))
    if found is None:
        yield Fault(f"{text}; the file that it is of is not known")
        return
    path, home, is_live, source = found
    sessions = list(record.rows(_KEYS, (source,)))
    for session, key in sessions or [(None, None)]:
        (others,) = record.row(_OTHERS, (session, original)) or (0,)
        kept = DamagedOriginal(as_path(path), as_path(home), bool(is_live), others)
        yield Fault(text, None if key is None else key.decode("utf-8", "replace"), kept)

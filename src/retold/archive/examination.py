"""Examination of an archive: finds pages, tables, values, pieces and chunks that differ from what was written."""

from __future__ import annotations

import json
from math import gcd
from typing import NamedTuple

import apsw

from retold.archive.database import DamagedError, RetoldError, run_migrations
from retold.archive.schema import STEPS
from retold.archive.store import Store, archive_exists, as_path, decompress, digest, unpack_summary
from retold.reading.disk import printable_path

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

PACKED_BYTES = 64 << 20
"""Compressed bytes of chunks that one examination decompresses: a few tenths of a second."""
_WEEK = 7
_MOST_FAULTS = 5
"""Structural faults that SQLite reports before it stops."""
_LARGE = (
    "messages", "tool_calls", "requests", "request_sums", "tool_sums", "activity_sums", "files", "dependencies", "pieces",
)  # fmt: skip
"""Tables with a row for each message or more: only a full examination reads their values."""
_JSON = {"sessions": "usage", "sources": "refusal", "rates": "prices"}
_TYPES = {"INTEGER": "integer", "TEXT": "text", "BLOB": "blob"}
_COMMON_FIELDS = ("key", "agent", "native_id", "kind", "parent", "title", "started_at", "ended_at", "status")
"""Fields that the row of a session and its JSON form both have."""
_CHUNK_OWNERS = """
SELECT originals.id FROM pieces JOIN originals ON originals.id = original WHERE chunk = ?
"""
_WITHOUT_CHUNKS = (
    "SELECT DISTINCT original FROM pieces WHERE NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.id = chunk)"
)
_WRONG_SIZES = """
SELECT originals.id FROM originals LEFT JOIN pieces ON original = originals.id LEFT JOIN chunks ON chunks.id = chunk
GROUP BY originals.id HAVING coalesce(sum(chunks.size), 0) <> originals.size OR count(position) <> coalesce(max(position) + 1, 0)
"""
_WITHOUT_ROW = "SELECT packed FROM summaries WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = summaries.session)"
_WITHOUT_SOURCES = """
SELECT CAST(key AS BLOB) FROM sessions WHERE NOT EXISTS (SELECT 1 FROM session_sources WHERE session = sessions.id)
"""
_WITH_UNKNOWN_SOURCE = """
SELECT DISTINCT id, CAST(key AS BLOB), packed FROM session_sources JOIN sessions ON sessions.id = session_sources.session
LEFT JOIN summaries ON summaries.session = id WHERE NOT EXISTS (SELECT 1 FROM sources WHERE sources.id = source)
"""
_WITH_LOST_SOURCE = """
SELECT sessions.id, CAST(key AS BLOB), path, home FROM session_sources JOIN sessions ON sessions.id = session
JOIN sources ON sources.id = source
WHERE NOT is_present AND NOT EXISTS (SELECT 1 FROM originals WHERE originals.source = sources.id)
"""
_ORPHANS = """
SELECT count(DISTINCT original) FROM pieces WHERE NOT EXISTS (SELECT 1 FROM originals WHERE originals.id = original)
"""
_ROW_COUNTS = """
SELECT CAST(key AS BLOB), packed,
    (SELECT count(*) FROM messages WHERE messages.session = sessions.id AND NOT is_event),
    (SELECT count(*) FROM tool_calls WHERE tool_calls.session = sessions.id),
    (SELECT count(*) FROM requests WHERE requests.session = sessions.id AND own)
FROM sessions JOIN summaries ON summaries.session = id
"""
_COUNT_NAMES = ("messages", "tool calls", "requests")
_SOURCE_OF_ORIGINAL = """
SELECT path, home, is_present AND is_latest = 1, source FROM originals JOIN sources ON sources.id = source WHERE originals.id = ?
"""
_SESSIONS_OF_SOURCE = "SELECT session, CAST(key AS BLOB) FROM session_sources JOIN sessions ON sessions.id = session WHERE source = ?"
_OTHER_ORIGINALS = """
SELECT count(*) FROM originals JOIN session_sources USING (source) WHERE session = ? AND originals.id IS NOT ?
"""


class DamagedOriginal(NamedTuple):
    """A damaged original, and what is left besides it."""

    path: str
    home: str
    is_live: bool
    """Whether the agent still has the file as it was archived."""
    other_originals: int
    """Other originals of the same session."""


class Fault(NamedTuple):
    """Something that differs from what was written."""

    text: str
    session: str | None = None
    """The key of the session that it concerns."""
    original: DamagedOriginal | None = None


def examine(
    store: Store, *, is_full: bool = False, day: int = 0, most: int = PACKED_BYTES
) -> Iterator[Fault]:
    """Yield what is damaged. Unless it is full, an examination reads only a part of the chunks, another one each day."""
    looks = (
        _check_structure(store, is_full=is_full),
        _check_schema(store),
        _check_values(store, is_full=is_full),
        _check_summaries(store),
        _check_relations(store, is_full=is_full),
        _check_pieces(store),
        _check_chunks(store, None if is_full else most, day),
    )
    for faults in looks:
        yield from _guarded(faults, store)


def find_damage(folder: str) -> str | None:
    """Return the first fault of a full examination as a sentence; None if the archive is whole, or there is none."""
    return _find_first(folder, lambda store: examine(store, is_full=True))


def find_table_damage(folder: str) -> str | None:
    """Return a table that differs from what retold creates, as a sentence: this takes milliseconds."""
    return _find_first(folder, lambda store: _guarded(_check_schema(store), store))


def _find_first(folder: str, look: Callable[[Store], Iterator[Fault]]) -> str | None:
    try:
        if not archive_exists(folder):
            return None
        store = Store(folder)
    except (RetoldError, OSError) as error:
        return str(error)
    try:
        fault = next(look(store), None)
    except RetoldError as error:
        return str(error)
    finally:
        store.connection.close()
    if fault is None:
        return None
    about = "" if fault.session is None else f" of {fault.session}"
    return f"{store.path} is damaged: {fault.text}{about}; `retold doctor --full` says what is still there"


def _guarded(faults: Iterator[Fault], store: Store) -> Iterator[Fault]:
    """Yield faults; damage that stops a check is a fault itself."""
    try:
        yield from faults
    except (DamagedError, apsw.SQLError, apsw.TooBigError, UnicodeDecodeError) as error:
        yield Fault(f"{error}" if isinstance(error, DamagedError) else f"{store.path}: {error}")


def _check_structure(store: Store, *, is_full: bool) -> Iterator[Fault]:
    check = "integrity_check" if is_full else "quick_check"
    for (text,) in store.rows(f"PRAGMA {check}({_MOST_FAULTS})"):
        if text != "ok":
            yield Fault(f"{store.path}: {text}")


def _check_schema(store: Store) -> Iterator[Fault]:
    query = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
    found = dict(store.rows(query))
    for name, sql in _expected_schema().execute(query):
        if found.get(name) != sql:
            yield Fault(f"{store.path}: {name} is {'changed' if name in found else 'missing'}")


def _expected_schema() -> apsw.Connection:
    model = apsw.Connection(":memory:")
    run_migrations(model, STEPS)
    return model


def _check_values(store: Store, *, is_full: bool) -> Iterator[Fault]:
    """Yield values of another type than their column, and texts that are not UTF-8."""
    model = _expected_schema()
    for (table,) in model.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"):
        if table == "chunks" or (table in _LARGE and not is_full):
            continue
        columns = {
            name: (kind, is_needed or is_key)
            for _, name, kind, is_needed, _, is_key in model.execute(f"PRAGMA table_info({table})")
        }
        yield from _guarded(_check_table(store, table, columns), store)


def _check_table(store: Store, table: str, columns: dict[str, tuple[str, int]]) -> Iterator[Fault]:
    owner = "session" if "session" in columns else "id" if table == "sessions" else "NULL"
    for name, (kind, is_needed) in columns.items():
        if kind in _TYPES:
            allowed = f"'{_TYPES[kind]}'" if is_needed else f"'{_TYPES[kind]}', 'null'"
            sql = f"SELECT DISTINCT {owner} FROM {table} WHERE typeof({name}) NOT IN ({allowed})"  # noqa: S608 - fixed names
            for (session,) in list(store.rows(sql)):
                yield Fault(f"a value in {table}.{name} is no {kind}", _load_key(store, session))
    texts = [name for name, (kind, _) in columns.items() if kind == "TEXT"]
    try:
        for _ in store.rows(f"SELECT {', '.join(texts) or 1} FROM {table}"):  # noqa: S608 - the same
            pass
    except UnicodeDecodeError:
        yield from _find_invalid_texts(store, table, owner, texts)
    if table in _JSON:
        yield from _find_invalid_json(store, table, owner, _JSON[table])


def _find_invalid_texts(store: Store, table: str, owner: str, texts: list[str]) -> Iterator[Fault]:
    raw = ", ".join(f"CAST({name} AS BLOB)" for name in texts)
    for session, *values in store.rows(f"SELECT {owner}, {raw} FROM {table}"):  # noqa: S608 - the same
        for name, value in zip(texts, values, strict=True):
            if value is not None and not _is_text(value):
                yield Fault(f"a text in {table}.{name} is not UTF-8", _load_key(store, session))


def _find_invalid_json(store: Store, table: str, owner: str, column: str) -> Iterator[Fault]:
    sql = f"SELECT {owner}, CAST({column} AS BLOB) FROM {table} WHERE {column} IS NOT NULL"  # noqa: S608 - the same
    for session, value in store.rows(sql):
        try:
            is_object = isinstance(json.loads(value), dict)
        except ValueError:
            is_object = False
        if not is_object:
            yield Fault(f"a value in {table}.{column} is no JSON object", _load_key(store, session))


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _load_key(store: Store, session: Any) -> str | None:
    found = store.row("SELECT CAST(key AS BLOB) FROM sessions WHERE id = ?", (session,))
    return None if found is None else found[0].decode("utf-8", "replace")


def _check_summaries(store: Store) -> Iterator[Fault]:
    """Yield sessions whose JSON form is missing, cannot be read, or differs from their row."""
    columns = ", ".join(f"CAST({name} AS BLOB)" for name in _COMMON_FIELDS)
    sql = f"SELECT packed, {columns} FROM sessions LEFT JOIN summaries ON session = id"  # noqa: S608 - the same
    for packed, *values in store.rows(sql):
        texts = [value if value is None else value.decode("utf-8", "replace") for value in values]
        summary = _decode_summary(packed)
        if summary is None:
            yield Fault("the summary cannot be read", texts[0])
        elif [summary.get(name) for name in _COMMON_FIELDS] != texts:
            yield Fault("the row and the summary differ", texts[0])


def _check_relations(store: Store, *, is_full: bool) -> Iterator[Fault]:
    """Yield sessions and originals that have lost some of their rows."""
    for (packed,) in store.rows(_WITHOUT_ROW):
        summary = _decode_summary(packed)
        yield Fault("the row of a session is missing", None if summary is None else summary.get("key"))
    for (key,) in store.rows(_WITHOUT_SOURCES):
        yield Fault("the rows of its files are missing", key.decode("utf-8", "replace"))
    yield from _check_sources(store)
    for (count,) in store.rows(_ORPHANS):
        if count:
            yield Fault(f"{store.path}: rows of kept files are missing: {count}")
    for key, packed, *counted in store.rows(_ROW_COUNTS) if is_full else ():
        summary = _decode_summary(packed) or {}
        counts, usage = summary.get("counts"), summary.get("usage")
        if isinstance(counts, dict) and isinstance(usage, dict):
            expected = [counts.get("messages"), counts.get("tool_calls"), usage.get("requests")]
            if summary.get("kind") == "capture":  # the agent printed its totals, and no single requests
                expected.pop()
            for name, stated, count in zip(_COUNT_NAMES, expected, counted, strict=False):
                if stated != count:
                    yield Fault(f"rows of its {name} are missing", key.decode("utf-8", "replace"))


def _check_sources(store: Store) -> Iterator[Fault]:
    """Yield sessions with a file that the archive does not know any more, or of which it has no original."""
    for session, key, packed in list(store.rows(_WITH_UNKNOWN_SOURCE)):
        sources = (_decode_summary(packed) or {}).get("sources")
        paths = [one.get("path") for one in sources or () if isinstance(one, dict)]
        known = {printable_path(as_path(path)) for (path,) in store.rows("SELECT path FROM sources")}
        lost = next((path for path in paths if isinstance(path, str) and path not in known), "a file")
        yield _lost_source_fault(store, session, key, lost, "")
    for session, key, path, home in list(store.rows(_WITH_LOST_SOURCE)):
        yield _lost_source_fault(store, session, key, as_path(path), as_path(home))


def _lost_source_fault(store: Store, session: int, key: bytes, path: str, home: str) -> Fault:
    (others,) = store.row(_OTHER_ORIGINALS, (session, None)) or (0,)
    original = DamagedOriginal(path, home, is_live=False, other_originals=others)
    return Fault("all rows are missing", key.decode("utf-8", "replace"), original)


def _decode_summary(packed: Any) -> dict[str, Any] | None:
    try:
        summary = json.loads(unpack_summary(packed))
    except (DamagedError, TypeError, ValueError):
        return None
    return summary if isinstance(summary, dict) else None


def _check_pieces(store: Store) -> Iterator[Fault]:
    """Yield originals that lack a chunk."""
    lacking = {original for (original,) in store.rows(_WITHOUT_CHUNKS)}
    for original in sorted(lacking):
        yield from _original_faults(store, original, "a chunk is missing")
    for (original,) in list(store.rows(_WRONG_SIZES)):
        if original not in lacking:
            yield from _original_faults(store, original, "the sizes of the chunks do not add up")


def _count_parts(store: Store, most: int) -> int:
    """Return into how many parts chunks are divided: not a multiple of 7, so that weekly examinations reach all parts."""
    (size,) = store.row("SELECT coalesce(sum(length(packed)), 0) FROM chunks") or (0,)
    count: int = max(1, -(-size // most))
    return count if gcd(count, _WEEK) == 1 else count + 1


def _check_chunks(store: Store, most: int | None, day: int) -> Iterator[Fault]:
    """Yield originals with a chunk whose content differs from its digest or size; of one part of the chunks, or of all."""
    parts = 1 if most is None else _count_parts(store, most)
    for (number,) in list(store.rows("SELECT id FROM chunks WHERE id % ? = ?", (parts, day % parts))):
        fault = _check_chunk(store, number)
        if fault is None:
            continue
        owners = [original for (original,) in store.rows(_CHUNK_OWNERS, (number,))]
        for original in owners:
            yield from _original_faults(store, original, fault)
        if not owners:
            yield Fault(f"{fault}; no kept file uses it")


def _check_chunk(store: Store, number: int) -> str | None:
    try:
        named, size, packed = store.row(
            "SELECT digest, size, packed FROM chunks WHERE id = ?", (number,)
        ) or (b"", 0, b"")
        data = decompress(bytes(packed))
        is_whole = len(data) == size and digest(data) == bytes(named)
    except (DamagedError, TypeError, UnicodeDecodeError):
        is_whole = False
    return None if is_whole else f"chunk {number} is damaged"


def _original_faults(store: Store, original: int, text: str) -> Iterator[Fault]:
    """Yield a fault of an original for each session that was read from it."""
    found = store.row(_SOURCE_OF_ORIGINAL, (original,))
    if found is None:
        yield Fault(f"{text}; the file that it is of is not known")
        return
    path, home, is_live, source = found
    sessions = list(store.rows(_SESSIONS_OF_SOURCE, (source,)))
    for session, key in sessions or [(None, None)]:
        (others,) = store.row(_OTHER_ORIGINALS, (session, original)) or (0,)
        damaged = DamagedOriginal(as_path(path), as_path(home), bool(is_live), others)
        yield Fault(text, None if key is None else key.decode("utf-8", "replace"), damaged)

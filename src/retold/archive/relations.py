"""Relations of all sessions in the archive: parents and children, and what one copied from another.

What several sessions hold belongs to the earliest of them; those whose own file calls it a copy come last. Only sessions
that changed, and those that share something with them, are updated.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from retold.archive.annotations import tags
from retold.archive.ledger import cost_of, roll_up
from retold.archive.queries.lookups import renamed_keys
from retold.archive.store import Store, packed_summary, summary_of
from retold.model.report import FIGURES
from retold.model.usage import LARGEST, stored_figure

_SHARED = """
SELECT one.name, one.session, one.seq, messages.copied = 1 FROM {0} one
JOIN messages ON messages.session = one.session AND messages.seq = one.seq
WHERE one.name IN (SELECT name FROM {0} WHERE session IN (SELECT id FROM temp.touched) AND name IS NOT NULL)
AND (
    EXISTS (SELECT 1 FROM {0} other WHERE other.name = one.name AND other.session < one.session)
    OR EXISTS (SELECT 1 FROM {0} other WHERE other.name = one.name AND other.session > one.session)
)
ORDER BY one.session, one.seq
"""
"""Names that several sessions hold. The index of names finds other sessions without a look at each row of a session that has one name many times."""
_HOLDERS = """
INSERT OR IGNORE INTO temp.touched SELECT DISTINCT session FROM {0} WHERE name IN (
    SELECT name FROM {0} WHERE session IN (SELECT id FROM temp.touched) AND name IS NOT NULL
)
"""
"""Whoever holds something of a touched session is told anew as well, and that with all that it holds of others."""
_SPECIAL = """
SELECT id FROM sessions WHERE key <> read_key
OR parent IN (SELECT read_key FROM sessions above WHERE above.read_key <> above.key)
OR name IN (SELECT name FROM tags UNION SELECT name FROM names)
OR evidence IN ('none', 'guessed') AND hash IN (SELECT hash FROM roots)
OR id IN (SELECT session FROM session_sources JOIN sources ON sources.id = source WHERE NOT is_there)
"""
"""Sessions whose row is not all that their files say."""
_REQUESTS = f"""
SELECT own, copied = 1, {", ".join(f"requests.{figure}" for figure in FIGURES)}
FROM requests JOIN messages USING (session, seq) WHERE session = ?
"""  # noqa: S608 - ours
"""The requests of a session: whether they count there, whether its file calls them copies, and their figures."""
_FIELDS = "id, name, key, read_kind, read_parent, read_title, root, native_key, hash, evidence, usage"


class Shares(msgspec.Struct):
    """What one session holds of others: who owns the first of it, its copied messages, and its copied requests."""

    elder: int | None = None
    messages: list[int] = []
    requests: list[int] = []


def resolve_relations(record: Store, touched: Iterable[int], fresh: Collection[int] = ()) -> None:
    """Tell sessions what they are to others; fresh ones only if they are anything."""
    ask = record.connection.execute
    ask("CREATE TEMP TABLE IF NOT EXISTS touched (id INTEGER PRIMARY KEY)")
    ask("DELETE FROM temp.touched")
    record.connection.executemany(
        "INSERT OR IGNORE INTO temp.touched VALUES (?)", [(one,) for one in touched]
    )
    for table in ("messages", "requests"):
        ask(_HOLDERS.format(table))
    concerned = {one for (one,) in ask("SELECT id FROM temp.touched")}
    shares = _shares(record, concerned)
    _mark(record, concerned, shares)
    keys, renamed = _keys(record), renamed_keys(record)
    special = {one for (one,) in ask(_SPECIAL)}
    for session in sorted(concerned):
        if session not in fresh or session in shares:
            roll_up(record.connection, session)
        if session not in fresh or session in special or session in shares:
            _tell(record, session, shares.get(session, Shares()), keys, renamed)
    _tell_parents(record, concerned)


def _keys(record: Store) -> dict[int, str]:
    return dict(record.connection.execute("SELECT id, key FROM sessions"))


def _shares(record: Store, concerned: Collection[int]) -> dict[int, Shares]:
    """Return what sessions hold of others."""
    found: defaultdict[int, Shares] = defaultdict(Shares)
    for table in ("messages", "requests"):
        rows = list(record.connection.execute(_SHARED.format(table)))
        owners = _owners(record, rows)
        for name, session, seq, _ in rows:
            if session not in concerned:
                continue
            shares = found[session]
            if owners[name] != session:
                if table == "requests":
                    shares.requests.append(name)
                    continue
                shares.messages.append(seq)
                shares.elder = owners[name] if shares.elder is None else shares.elder
    return dict(found)


def _owners(record: Store, rows: Iterable[tuple[Any, ...]]) -> dict[int, int]:
    """Return the owner of everything that several sessions hold: the earliest that does not call it a copy."""
    holders = sorted({session for _, session, _, _ in rows})
    # Without its Z, a time to the millisecond sorts before one to the microsecond.
    asked = "SELECT rtrim(started_at, 'Z'), rtrim(ended_at, 'Z'), read_key FROM sessions WHERE id = ?"
    order = {
        session: (*map(str, record.connection.execute(asked, (session,)).fetchone() or ()), session)
        for session in holders
    }
    owners: dict[int, tuple[Any, ...]] = {}
    for name, session, _, is_copy in rows:
        claim = (is_copy, *order[session])
        owners[name] = min(owners.get(name, claim), claim)
    return {name: claim[-1] for name, claim in owners.items()}


def _mark(record: Store, concerned: Iterable[int], shares: Mapping[int, Shares]) -> None:
    ask, many = record.connection.execute, record.connection.executemany
    for session in concerned:
        ask("UPDATE messages SET copied = 0 WHERE session = ? AND copied = 2", (session,))
        ask("UPDATE requests SET own = 1 WHERE session = ? AND own = 0", (session,))
    for session, held in shares.items():
        many(
            "UPDATE messages SET copied = 2 WHERE session = ? AND seq = ? AND copied = 0",
            [(session, seq) for seq in held.messages],
        )
        many(
            "UPDATE requests SET own = 0 WHERE session = ? AND name = ?",
            [(session, name) for name in held.requests],
        )


def _tell(
    record: Store, session: int, shares: Shares, keys: Mapping[int, str], renamed: Mapping[str, str]
) -> None:
    """Write what a session is to others into its row and its JSON form."""
    ask = record.connection.execute
    found = ask(f"SELECT {_FIELDS} FROM sessions WHERE id = ?", (session,)).fetchone()  # noqa: S608 - ours
    if found is None:
        return
    _, name, key, kind, parent, read_title, root, native_key, project_hash, evidence, usage = found
    parent = renamed.get(parent, parent)
    if shares.elder is not None and kind == "main" and parent is None:
        kind, parent = "fork", keys[shares.elder]
    if root is None or evidence == "guessed":
        proven = ask("SELECT root FROM roots WHERE hash = ?", (project_hash,)).get
        root, evidence = (proven, "hash") if proven is not None else (root, evidence)
    told = _summary(record, session)
    told |= {"key": key, "kind": kind, "parent": parent}
    told["project"] = {"root": root, "native_key": native_key, "hash": project_hash, "evidence": evidence}
    told["usage"] = _settled_usage(record, session, json.loads(usage))
    told["cost_usd"] = cost_of(record, session)
    told["tags"] = tags(record, name)
    own_title = ask("SELECT title FROM names WHERE name = ?", (name,)).get
    told["title"] = own_title or read_title
    told["children"] = [child for child in told["children"] if _is_key(record, child)]
    _tell_sources(record, session, told["sources"])
    ask(
        "UPDATE sessions SET kind = ?, parent = ?, root = ?, evidence = ?, title = ?, total = ? WHERE id = ?",
        (
            kind,
            parent,
            root,
            evidence,
            told["title"],
            stored_figure(told["usage"]["total"], LARGEST),
            session,
        ),
    )
    _keep_summary(record, session, told)


def _is_key(record: Store, key: str) -> bool:
    return record.row("SELECT 1 FROM sessions WHERE key = ?", (key,)) is not None


def _tell_sources(record: Store, session: int, sources: Iterable[dict[str, Any]]) -> None:
    """Tell of a session's files whether they are still there."""
    gone = set(_gone(record, session))
    for source in sources:
        if source["state"] != "earlier":
            source["state"] = "gone" if source["path"] in gone else "present"


def _gone(record: Store, session: int) -> Iterable[str]:
    asked = "SELECT path FROM sources JOIN session_sources ON source = id WHERE session = ? AND NOT is_there"
    for (path,) in record.connection.execute(asked, (session,)):
        yield path.decode("utf-8", "replace") if isinstance(path, bytes) else path


def _settled_usage(record: Store, session: int, usage: dict[str, Any]) -> dict[str, Any]:
    """Return a session's totals without the requests of other sessions, and with copied ones that it alone holds."""
    rows = list(record.rows(_REQUESTS, (session,)))
    lost = [figures for own, is_copy, *figures in rows if not own and not is_copy]
    adopted = [figures for own, is_copy, *figures in rows if own and is_copy]
    if not lost and not adopted:
        return usage
    own = [figures for own, _, *figures in rows if own]
    if not own:
        return {**dict.fromkeys(usage), "requests": 0, "estimated": False}
    settled = {
        figure: _settled_figure(
            usage.get(figure), _known(lost, place), _known(adopted, place), _known(own, place)
        )
        for place, figure in enumerate(FIGURES)
    }
    known = {figure: value for figure, value in settled.items() if figure in usage or value is not None}
    return {**usage, **known, "requests": usage["requests"] - len(lost) + len(adopted)}


def _known(requests: Iterable[Sequence[int | None]], place: int) -> list[int]:
    return [figure for request in requests if (figure := request[place]) is not None]


def _settled_figure(
    whole: int | None, lost: Sequence[int], adopted: Sequence[int], own: Sequence[int]
) -> int | None:
    """Return a sum without what was lost and with what was adopted; None where no own request tells this figure."""
    if (whole is None or lost) and not own:
        return None
    return None if whole is None and not adopted else (whole or 0) - sum(lost) + sum(adopted)


def _tell_parents(record: Store, concerned: Collection[int]) -> None:
    """Name the children of every session that has some, where it or one of them is concerned."""
    ask = record.connection.execute
    families: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    asked = "SELECT parent, key, id FROM sessions WHERE kind = 'subagent' AND parent IS NOT NULL ORDER BY rtrim(started_at, 'Z'), key"
    for parent, key, member in ask(asked):
        families[parent].append((key, member))
    for parent, members in families.items():
        session = ask("SELECT id FROM sessions WHERE key = ?", (parent,)).get
        is_concerned = session in concerned or any(member in concerned for _, member in members)
        if session is None or not is_concerned:
            continue
        summary, children = _summary(record, session), [key for key, _ in members]
        if summary["children"] != children:
            _keep_summary(record, session, {**summary, "children": children})


def _summary(record: Store, session: int) -> dict[str, Any]:
    found = next(record.rows("SELECT packed FROM summaries WHERE session = ?", (session,)))
    told: dict[str, Any] = json.loads(summary_of(found[0]))
    return told


def _keep_summary(record: Store, session: int, told: dict[str, Any]) -> None:
    packed = packed_summary(json.dumps(told, ensure_ascii=False, separators=(",", ":")))
    record.connection.execute("UPDATE summaries SET packed = ? WHERE session = ?", (packed, session))

"""Relations of sessions: parents and children, and what one copied from another.

A message or request that several sessions have belongs to the earliest of them; those whose own file calls it a copy come last.
Only sessions that changed, and those that share something with them, are updated.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from retold.archive.annotations import load_session_tags
from retold.archive.ledger import load_cost, rebuild_sums
from retold.archive.queries.lookups import load_renamed_keys
from retold.archive.store import Store, pack_summary, unpack_summary
from retold.model import FIGURES
from retold.model.session import LARGEST_INTEGER, clamp_figure

_SHARED = """
SELECT one.uid, one.session, one.seq, messages.copied = 1 FROM {0} one
JOIN messages ON messages.session = one.session AND messages.seq = one.seq
WHERE one.uid IN (SELECT uid FROM {0} WHERE session IN (SELECT id FROM temp.changed) AND uid IS NOT NULL)
AND (
    EXISTS (SELECT 1 FROM {0} other WHERE other.uid = one.uid AND other.session < one.session)
    OR EXISTS (SELECT 1 FROM {0} other WHERE other.uid = one.uid AND other.session > one.session)
)
ORDER BY one.session, one.seq
"""
"""Uids that several sessions have. The index of uids finds other sessions without a look at each row of a session that has one
uid many times.
"""
_HOLDERS = """
INSERT OR IGNORE INTO temp.changed SELECT DISTINCT session FROM {0} WHERE uid IN (
    SELECT uid FROM {0} WHERE session IN (SELECT id FROM temp.changed) AND uid IS NOT NULL
)
"""
"""Adds the sessions that share something with a changed session: they are updated with everything that they share."""
_IS_SPECIAL = """key <> read_key
OR parent IN (SELECT read_key FROM sessions above WHERE above.read_key <> above.key)
OR uid IN (SELECT uid FROM tags UNION SELECT uid FROM titles)
OR evidence IN ('none', 'guessed') AND hash IN (SELECT hash FROM roots)
OR id IN (SELECT session FROM session_sources JOIN sources ON sources.id = source WHERE NOT is_present)
"""
"""Sessions whose row differs from what their files say."""
_REQUESTS = f"""
SELECT own, copied = 1, {", ".join(f"requests.{figure}" for figure in FIGURES)}
FROM requests JOIN messages USING (session, seq) WHERE session = ?
"""  # noqa: S608 - ours
"""The requests of a session: whether they count there, whether its file calls them copies, and their figures."""
_FIELDS = "uid, key, read_kind, read_parent, read_title, root, native_key, hash, evidence, usage"


class SharedParts(msgspec.Struct):
    """Parts of one session that belong to others."""

    origin: int | None = None
    """The owner of the first shared message."""
    messages: list[int] = []
    """By their seq."""
    requests: list[int] = []
    """By their uid."""


def resolve_relations(store: Store, changed: Iterable[int], just_written: Collection[int] = ()) -> None:
    """Write the relations of changed sessions; a session that was just written needs it only if it has some."""
    execute = store.connection.execute
    execute("CREATE TEMP TABLE IF NOT EXISTS changed (id INTEGER PRIMARY KEY)")
    execute("DELETE FROM temp.changed")
    store.connection.executemany("INSERT OR IGNORE INTO temp.changed VALUES (?)", [(one,) for one in changed])
    for table in ("messages", "requests"):
        execute(_HOLDERS.format(table))
    concerned = {one for (one,) in execute("SELECT id FROM temp.changed")}
    shared = _find_shared_parts(store, concerned)
    _mark_copies(store, shared)
    keys = dict(execute("SELECT id, key FROM sessions"))
    renamed = load_renamed_keys(store)
    special = {one for (one,) in execute(f"SELECT id FROM sessions WHERE {_IS_SPECIAL}")}  # noqa: S608 - ours
    rebuild_sums(store.connection, [one for one in concerned if one not in just_written or one in shared])
    for session in sorted(concerned):
        if session not in just_written or session in special or session in shared:
            _write_relations(store, session, shared.get(session, SharedParts()), keys, renamed)
    _write_children(store, concerned)


def resolve_grown_session(store: Store, session: int) -> None:
    """Write the relations of a session that has new entries, and shares none."""
    execute = store.connection.execute
    if execute(f"SELECT 1 FROM sessions WHERE id = ? AND ({_IS_SPECIAL})", (session,)).get is not None:  # noqa: S608 - ours
        keys = dict(execute("SELECT id, key FROM sessions"))
        _write_relations(store, session, SharedParts(), keys, load_renamed_keys(store))
    sql = (
        "SELECT child.key FROM sessions child JOIN sessions above ON child.parent = above.key"
        " WHERE above.id = ? AND child.kind = 'subagent' ORDER BY rtrim(child.started_at, 'Z'), child.key"
    )
    children = [key for (key,) in execute(sql, (session,))]
    if children:
        _write_summary(store, session, {**_load_summary(store, session), "children": children})


def _find_shared_parts(store: Store, concerned: Collection[int]) -> dict[int, SharedParts]:
    """Return the parts of sessions that belong to others, by session."""
    found: defaultdict[int, SharedParts] = defaultdict(SharedParts)
    for table in ("messages", "requests"):
        rows = list(store.connection.execute(_SHARED.format(table)))
        owners = _find_owners(store, rows)
        for uid, session, seq, _ in rows:
            if session not in concerned:
                continue
            shared = found[session]
            if owners[uid] != session:
                if table == "requests":
                    shared.requests.append(uid)
                    continue
                shared.messages.append(seq)
                shared.origin = owners[uid] if shared.origin is None else shared.origin
    return dict(found)


def _find_owners(store: Store, rows: Iterable[tuple[int, int, int, int]]) -> dict[int, int]:
    """Return the owner of each shared uid: the earliest session that does not call it a copy."""
    holders = sorted({session for _, session, _, _ in rows})
    # Without its Z, a time to the millisecond sorts before one to the microsecond.
    sql = "SELECT rtrim(started_at, 'Z'), rtrim(ended_at, 'Z'), read_key FROM sessions WHERE id = ?"
    order = {
        session: (*map(str, store.connection.execute(sql, (session,)).fetchone() or ()), session)
        for session in holders
    }
    owners: dict[int, Any] = {}
    for uid, session, _, is_copy in rows:
        claim = (is_copy, *order[session])
        owners[uid] = min(owners.get(uid, claim), claim)
    return {uid: claim[-1] for uid, claim in owners.items()}


def _mark_copies(store: Store, shared: Mapping[int, SharedParts]) -> None:
    """Mark the messages and requests of changed sessions that belong to others."""
    execute, many = store.connection.execute, store.connection.executemany
    changed = "session IN (SELECT id FROM temp.changed)"
    execute(f"UPDATE messages SET copied = 0 WHERE {changed} AND copied = 2")  # noqa: S608 - ours
    execute(f"UPDATE requests SET own = 1 WHERE {changed} AND own = 0")  # noqa: S608 - ours
    for session, parts in shared.items():
        sql = "UPDATE messages SET copied = 2 WHERE session = ? AND seq = ? AND copied = 0"
        many(sql, [(session, seq) for seq in parts.messages])
        sql = "UPDATE requests SET own = 0 WHERE session = ? AND uid = ?"
        many(sql, [(session, uid) for uid in parts.requests])


def _write_relations(
    store: Store, session: int, shared: SharedParts, keys: Mapping[int, str], renamed: Mapping[str, str]
) -> None:
    """Write the relations of a session into its row and its JSON form."""
    execute = store.connection.execute
    row = execute(f"SELECT {_FIELDS} FROM sessions WHERE id = ?", (session,)).fetchone()  # noqa: S608 - ours
    if row is None:
        return
    uid, key, kind, parent, read_title, root, native_key, project_hash, evidence, usage = row
    parent = renamed.get(parent, parent)
    if shared.origin is not None and kind == "main" and parent is None:
        kind, parent = "fork", keys[shared.origin]
    if root is None or evidence == "guessed":
        proven = execute("SELECT root FROM roots WHERE hash = ?", (project_hash,)).get
        root, evidence = (proven, "hash") if proven is not None else (root, evidence)
    is_key = "SELECT 1 FROM sessions WHERE key = ?"
    own_title = execute("SELECT title FROM titles WHERE uid = ?", (uid,)).get
    summary = _load_summary(store, session)
    summary |= {
        "key": key,
        "kind": kind,
        "parent": parent,
        "project": {"root": root, "native_key": native_key, "hash": project_hash, "evidence": evidence},
        "usage": _settled_usage(store, session, json.loads(usage)),
        "cost_usd": load_cost(store, session),
        "tags": load_session_tags(store, uid),
        "title": own_title or read_title,
        "children": [child for child in summary["children"] if execute(is_key, (child,)).get],
    }
    _mark_missing_sources(store, session, summary["sources"])
    total = clamp_figure(summary["usage"]["total"], LARGEST_INTEGER)
    execute(
        "UPDATE sessions SET kind = ?, parent = ?, root = ?, evidence = ?, title = ?, total = ? WHERE id = ?",
        (kind, parent, root, evidence, summary["title"], total, session),
    )
    _write_summary(store, session, summary)


def _mark_missing_sources(store: Store, session: int, sources: Iterable[dict[str, Any]]) -> None:
    """Set whether each of a session's files is still there."""
    sql = "SELECT path FROM sources JOIN session_sources ON source = id WHERE session = ? AND NOT is_present"
    missing = {
        path.decode("utf-8", "replace") if isinstance(path, bytes) else path
        for (path,) in store.connection.execute(sql, (session,))
    }
    for source in sources:
        if source["state"] != "earlier":
            source["state"] = "gone" if source["path"] in missing else "present"


def _settled_usage(store: Store, session: int, usage: dict[str, Any]) -> dict[str, Any]:
    """Return a session's totals without requests of other sessions, and with copied ones that no other session has."""
    rows = list(store.rows(_REQUESTS, (session,)))
    lost = [figures for own, is_copy, *figures in rows if not own and not is_copy]
    adopted = [figures for own, is_copy, *figures in rows if own and is_copy]
    if not lost and not adopted:
        return usage
    own = [figures for own, _, *figures in rows if own]
    if not own:
        return {**dict.fromkeys(usage), "requests": 0, "estimated": False}
    settled = {
        figure: _settled_figure(
            usage.get(figure), _known(lost, index), _known(adopted, index), _known(own, index)
        )
        for index, figure in enumerate(FIGURES)
    }
    known = {figure: value for figure, value in settled.items() if figure in usage or value is not None}
    return {**usage, **known, "requests": usage["requests"] - len(lost) + len(adopted)}


def _known(requests: Iterable[Sequence[int | None]], index: int) -> list[int]:
    return [figure for request in requests if (figure := request[index]) is not None]


def _settled_figure(
    whole: int | None, lost: Sequence[int], adopted: Sequence[int], own: Sequence[int]
) -> int | None:
    """Return a total without lost requests and with adopted ones; None if no own request has this figure."""
    if (whole is None or lost) and not own:
        return None
    return None if whole is None and not adopted else (whole or 0) - sum(lost) + sum(adopted)


def _write_children(store: Store, concerned: Collection[int]) -> None:
    """Write the children of each session that has some, if it or one of them is concerned."""
    execute = store.connection.execute
    families: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    sql = "SELECT parent, key, id FROM sessions WHERE kind = 'subagent' AND parent IS NOT NULL ORDER BY rtrim(started_at, 'Z'), key"
    for parent, key, member in execute(sql):
        families[parent].append((key, member))
    for parent, members in families.items():
        session = execute("SELECT id FROM sessions WHERE key = ?", (parent,)).get
        is_concerned = session in concerned or any(member in concerned for _, member in members)
        if session is None or not is_concerned:
            continue
        summary, children = _load_summary(store, session), [key for key, _ in members]
        if summary["children"] != children:
            _write_summary(store, session, {**summary, "children": children})


def _load_summary(store: Store, session: int) -> dict[str, Any]:
    found = next(store.rows("SELECT packed FROM summaries WHERE session = ?", (session,)))
    summary: dict[str, Any] = json.loads(unpack_summary(found[0]))
    return summary


def _write_summary(store: Store, session: int, summary: dict[str, Any]) -> None:
    packed = pack_summary(json.dumps(summary, ensure_ascii=False, separators=(",", ":")))
    store.connection.execute("UPDATE summaries SET packed = ? WHERE session = ?", (packed, session))

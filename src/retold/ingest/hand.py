"""The user's own hand: titles and tags, and roots of projects that were looked for."""

from collections.abc import Mapping, Sequence

from retold.archive.record import Record
from retold.archive.settling import settle
from retold.ingest.lock import Lock


def name_session(record: Record, key: str, title: str) -> None:
    """Give a session a title; an empty one brings back the agent's own."""
    number, name = _known(record, key)
    with record.connection:
        if title:
            record.connection.execute("INSERT OR REPLACE INTO names VALUES (?, ?)", (name, title))
        else:
            record.connection.execute("DELETE FROM names WHERE name = ?", (name,))
        settle(record, [number])


def tag_session(record: Record, key: str, tags: Sequence[str]) -> None:
    """Add tags, and take those off that begin with a minus."""
    number, name = _known(record, key)
    with record.connection:
        for tag in tags:
            if tag.startswith("-"):
                record.connection.execute("DELETE FROM tags WHERE name = ? AND tag = ?", (name, tag[1:]))
            else:
                record.connection.execute(
                    "INSERT OR IGNORE INTO tags VALUES (?, ?)", (name, tag.removeprefix("+"))
                )
        settle(record, [number])


def tags_of(record: Record, key: str) -> list[str]:
    """Return the tags of a session."""
    _, name = _known(record, key)
    return [tag for (tag,) in record.rows("SELECT tag FROM tags WHERE name = ? ORDER BY tag", (name,))]


def learn_roots(folder: str, roots: Mapping[str, str]) -> None:
    """Keep roots that were found by their hashes, and tell the sessions that took place there."""
    with Lock(folder, lambda: None), Record(folder, can_write=True) as record, record.connection:
        record.connection.executemany("INSERT OR REPLACE INTO roots VALUES (?, ?)", roots.items())
        marks = ", ".join("?" * len(roots))
        asked = f"SELECT id FROM sessions WHERE hash IN ({marks})"  # noqa: S608 - values are bound
        settle(record, [number for (number,) in record.rows(asked, list(roots))])


def _known(record: Record, key: str) -> tuple[int, int]:
    row = record.row("SELECT id, name FROM sessions WHERE key = ?", (key,))
    if row is None:
        raise KeyError(key)
    return row[0], row[1]

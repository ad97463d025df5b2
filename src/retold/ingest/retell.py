"""A session with everything that was said in it, read again from its originals: the archive alone is enough."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from retold.agents.protocol import Agent, Home, Lost, Reading, Source
from retold.agents.registry import AGENTS
from retold.archive.record import Record, as_path, summary_of
from retold.archive.sessions import known_by
from retold.archive.sources import kept_in_cluster, read_from
from retold.ingest.belonging import Belonging
from retold.ingest.derive import conversation_name, conversations, scraps
from retold.ingest.kept import KeptDisk, KeptFile, Pinned
from retold.model.problem import Problem
from retold.model.session import Session, View
from retold.model.wire import decode_summary
from retold.reading.disk import Disk


def retold(record: Record, key: str, view: View = "full") -> Session | None:
    """Return a session by its key, all of it as it was at one moment; None if there is none."""
    with record.connection:
        found = [_retold(record, key, view)]
    return found[0]


def lost(record: Record, key: str) -> Lost | None:
    """Return all that there is of a session, to write it back; None if there is none."""
    row = known_by(record, key)
    if row is None:
        return None
    number, name, agent, cluster, packed = row
    found = _read(AGENTS[agent], _sources(record, agent, cluster, number), name, "full")
    readings = () if found is None else found[0]
    disk = KeptDisk(record, agent)
    rows = kept_in_cluster(record, agent, cluster) if cluster is not None else ()
    files = [_source(disk, *row) for row in rows]
    return Lost(decode_summary(summary_of(packed)), readings, files)


def _retold(record: Record, key: str, view: View) -> Session | None:
    row = known_by(record, key)
    if row is None:
        return None
    session = unmarked(record, row, view)
    marked = Belonging(record, row[0]).marked(session.timeline)
    return msgspec.structs.replace(session, timeline=tuple(marked))


def unmarked(record: Record, row: Sequence[Any], view: View) -> Session:
    """Return a session by what it is known by; what of its timeline belongs to others is not told."""
    number, name, agent, cluster, packed = row
    known = decode_summary(summary_of(packed))
    found = _read(AGENTS[agent], _sources(record, agent, cluster, number), name, view)
    return known if found is None else _as_known(found[1], known)


def _read(
    agent: Agent, sources: Iterable[Source], name: int, view: View
) -> tuple[Sequence[Reading], Session] | None:
    """Return what a session is read from, and the session."""
    clustered: list[Reading] = []
    loose: list[Reading] = []
    for source in sources:
        found = agent.read(source)
        if not isinstance(found, Problem):
            (loose if source.cluster is None else clustered).extend(found)
    shared = scraps(agent, loose)
    for group, readings, session in conversations(agent, clustered, shared, view):
        if conversation_name(agent, group) == name:
            return readings, session
    alone = next((said for group, said in shared.items() if conversation_name(agent, group) == name), None)
    return None if alone is None else (alone, agent.join(alone, view))


def _sources(record: Record, agent: str, cluster: str | None, session: int) -> Iterator[Source]:
    """Yield the files of a cluster as they were last, and as they were before where that is kept as well."""
    disk = KeptDisk(record, agent)
    for path, home, folder, label, group, is_latest, *original in read_from(record, agent, cluster, session):
        place = as_path(path)
        seen = disk if is_latest else Pinned(disk, place, KeptFile(record.originals, *original))
        yield _source(seen, path, home, folder, label, group)


def _source(  # noqa: PLR0913 - what is kept of a file
    disk: Disk,
    path: str | bytes,
    home: str | bytes,
    folder: str | bytes,
    label: str | None,
    group: str | None,
) -> Source:
    return Source(Path(as_path(path)), Home(Path(as_path(home)), Path(as_path(folder)), label, disk), group)


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
    return msgspec.structs.replace(session, **kept)

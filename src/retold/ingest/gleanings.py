"""What sessions come to, read from the archive: one, or those that are meant, each with its subagents."""

from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from retold.analysis.gleaning import Gleaned, gleaned
from retold.archive.queries.conditions import Condition
from retold.archive.queries.listing import is_among
from retold.archive.store import Store
from retold.ingest.slices import slices
from retold.model.session import Session
from retold.query.listing import listed_keys
from retold.query.wanted import Filters

MOST = 100
"""Sessions that are looked into, unless more are asked for."""


class Gleaning(msgspec.Struct, frozen=True):
    """A session and what it comes to."""

    session: Session
    """Without its timeline."""
    gleaned: Gleaned
    subagents: "tuple[Gleaning, ...]" = ()
    """Those that it started, and those that they started, in their order."""

    @property
    def all(self) -> "tuple[Gleaning, ...]":
        """This one and its subagents."""
        return (self, *self.subagents)


def gleaning(record: Store, key: str) -> Gleaning | None:
    """Return what a session comes to, without its subagents; None if there is none. Of a long one, little is held at a time."""
    parts = slices(record, key)
    first = next(parts, None)
    if first is None:
        return None
    rest = chain.from_iterable(part.session.timeline for part in parts)
    found = gleaned(chain(first.session.timeline, rest))
    session = msgspec.structs.replace(first.session, timeline=())
    if session.kind == "prompts-only":  # whatever was answered is lost
        found = msgspec.structs.replace(found, open_ends=())
    return Gleaning(session, found)


def with_subagents(record: Store, found: Gleaning, reach: Sequence[Condition] = ()) -> Gleaning:
    """Return the same with what its subagents come to, if somebody may see them: they may work elsewhere."""
    return msgspec.structs.replace(
        found, subagents=tuple(_subagents(record, found.session, {found.session.key}, reach))
    )


def _subagents(
    record: Store, session: Session, told: set[str], reach: Sequence[Condition]
) -> Iterator[Gleaning]:
    for key in session.children:
        if key in told or not is_among(record, key, reach):
            continue
        told.add(key)
        child = gleaning(record, key)
        if child is not None and child.session.kind == "subagent":
            yield child
            yield from _subagents(record, child.session, told, reach)


def gleanings(
    record: Store, wanted: Filters, most: int = MOST, reach: Sequence[Condition] = ()
) -> Iterator[Gleaning]:
    """Yield what the meant sessions come to, the newest first, with their subagents as far as they are within reach."""
    for key in listed_keys(record, wanted)[:most]:
        found = gleaning(record, key)
        if found is not None:
            yield with_subagents(record, found, reach)

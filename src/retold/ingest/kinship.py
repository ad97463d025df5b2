"""How sessions belong together over all homes: parents and children, and entries that were copied from one to another.

What several sessions hold belongs to the earliest of them. Only what tells entries apart is kept in mind, not the entries.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, count
from typing import NamedTuple

import msgspec

from retold.model.entries import Entry, Message
from retold.model.project import root_hash
from retold.model.session import Session
from retold.model.usage import Totals, Usage, totals

_FIGURES = ("input", "cached", "cache_write", "output", "reasoning", "tool", "total", "cache_write_1h")
_LARGEST = 2**63 - 1
_UNKNOWN = -1
_TELLING = 16
"""Ids shorter than this are too common to tell that two entries are one."""


class _Held(NamedTuple):
    """What one session holds: its entries and requests by their hashes, and the figures of each request."""

    order: tuple[str, str, str]
    entries: "array[int]"
    requests: "array[int]"
    figures: "array[int]"


class Kinship:
    """What is known of sessions that went by; when all have, each can be told what it is to the others."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._children: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        self._owners: dict[int, str] | None = None

    def watch(self, sessions: Iterable[Session]) -> Iterator[Session]:
        """Yield the sessions as they are, but for a key that is another's already."""
        for session in sessions:
            known = self._with_own_key(session)
            self._held[known.key] = _held(known)
            if known.parent is not None and known.kind == "subagent":
                self._children[known.parent].append((str(known.started_at), known.key))
            yield known

    def told(self, session: Session) -> Session:
        """Return a session that went by, with its relatives named and without what belongs to an earlier one."""
        held = self._held[session.key]
        owners = self._shared()
        children = tuple(key for _, key in sorted(self._children.get(session.key, ()))) or session.children
        elders = [owners[name] for name in held.entries if owners.get(name, session.key) != session.key]
        copied = [
            place for place, name in enumerate(held.requests) if owners.get(name, session.key) != session.key
        ]
        if elders and session.kind == "main" and session.parent is None:
            session = msgspec.structs.replace(session, kind="fork", parent=elders[0])
        if elders or copied:
            timeline = tuple(self._marked(entry, session.key) for entry in session.timeline)
            usage = _without(session.usage, held, copied)
            session = msgspec.structs.replace(session, timeline=timeline, usage=usage)
        return msgspec.structs.replace(session, children=children)

    def _with_own_key(self, session: Session) -> Session:
        """Return a session under a key of its own: with the project's hash behind it, or that of its file's path."""
        names = chain((session.key,), (f"{session.key}~{name[:6]}" for name in _hashes(session)))
        return msgspec.structs.replace(session, key=next(name for name in names if name not in self._held))

    def _shared(self) -> dict[int, str]:
        """Return the earliest session of everything that several hold."""
        if self._owners is None:
            times = Counter(
                chain.from_iterable(
                    frozenset(chain(held.entries, held.requests)) for held in self._held.values()
                )
            )
            owners: dict[int, str] = {}
            for key, held in sorted(self._held.items(), key=lambda item: item[1].order):
                for name in chain(held.entries, held.requests):
                    if times[name] > 1:
                        owners.setdefault(name, key)
            self._owners = owners
        return self._owners

    def _marked(self, entry: Entry, key: str) -> Entry:
        """Return an entry that is marked if it is a copy."""
        names = [hash(("entry", entry.id))] if len(entry.id or "") >= _TELLING else []
        if isinstance(entry, Message) and entry.usage is not None:
            names.append(hash(("request", entry.usage.request)))
        owners = self._shared()
        if all(owners.get(name, key) == key for name in names):
            return entry
        return msgspec.structs.replace(entry, own=False)


def _hashes(session: Session) -> Iterator[str]:
    """Yield what tells a session from others of the same key: enough for any number of them."""
    if session.project.hash is not None:
        yield session.project.hash
    path = session.sources[0].path
    yield from (root_hash(f"{path}{number or ''}") for number in count())


def _held(session: Session) -> _Held:
    messages = [entry for entry in session.timeline if isinstance(entry, Message)]
    usages = {entry.usage.request: entry.usage for entry in messages if entry.usage and entry.own}
    return _Held(
        (str(session.started_at), str(session.ended_at), session.key),
        array("q", [hash(("entry", entry.id)) for entry in messages if len(entry.id or "") >= _TELLING]),
        array("q", [hash(("request", request)) for request in usages]),
        array("q", chain.from_iterable(map(_figures, usages.values()))),
    )


def _figures(usage: Usage) -> Iterator[int]:
    for name in _FIGURES:
        figure = getattr(usage, name)
        yield _UNKNOWN if figure is None else max(min(figure, _LARGEST), 0)


def _without(usage: Totals, held: _Held, copied: list[int]) -> Totals:
    """Return totals without some of the requests that they sum up."""
    if not copied:
        return usage
    if len(copied) == len(held.requests):
        return totals(())
    changed: dict[str, int | None] = {}
    for column, name in enumerate(_FIGURES):
        figures = [held.figures[place * len(_FIGURES) + column] for place in copied]
        known, whole = [figure for figure in figures if figure != _UNKNOWN], getattr(usage, name)
        changed[name] = None if whole is None else whole - sum(known)
    return msgspec.structs.replace(usage, requests=usage.requests - len(copied), **changed)

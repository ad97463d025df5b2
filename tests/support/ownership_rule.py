"""A reference implementation of ownership between sessions; the archive must give the same result."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count

import msgspec

from retold.model.entries import Entry, Message
from retold.model.project import root_hash
from retold.model.session import Session
from retold.model.usage import Usage, totals

TELLING = 16
"""The minimum length of a message id: shorter ids are too common to identify a message."""
Thing = tuple[str, str | None]
"""A message or a request: its kind and its id."""
Owners = Mapping[Thing, str]


def resolve_ownership(sessions: Sequence[Session]) -> dict[str, Session]:
    """Return sessions by key; a message or request in several sessions belongs to the earliest of them."""
    named = _with_own_keys(sessions)
    owners: dict[Thing, str] = {}
    for key, one in sorted(named.items(), key=lambda item: _age(item[1])):
        for thing in chain(_messages(one), _requests(one)):
            owners.setdefault(thing, key)
    children: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for key, one in named.items():
        if one.kind == "subagent" and one.parent is not None:
            children[one.parent].append((str(one.started_at), key))
    return {
        key: msgspec.structs.replace(
            _told(key, one, owners), children=tuple(child for _, child in sorted(children[key]))
        )
        for key, one in named.items()
    }


def _with_own_keys(sessions: Sequence[Session]) -> dict[str, Session]:
    """Return sessions by unique key; a repeated key gets the hash of the project or of the file's path."""
    named: dict[str, Session] = {}
    for one in sessions:
        path = one.sources[0].path
        hashes = chain((one.project.hash or "",), (root_hash(f"{path}{number or ''}") for number in count()))
        keys = chain((one.key,), (f"{one.key}~{name[:6]}" for name in hashes))
        named[next(key for key in keys if key not in named)] = one
    return named


def _age(one: Session) -> tuple[bool, object, bool, object, str]:
    return one.started_at is None, one.started_at, one.ended_at is None, one.ended_at, one.key


def _messages(one: Session) -> Iterator[Thing]:
    for entry in one.timeline:
        if isinstance(entry, Message) and len(entry.id or "") >= TELLING:
            yield "message", entry.id


def _requests(one: Session) -> dict[Thing, Usage]:
    """Return the usage of each request; if several messages have the same request, the last one counts."""
    return {
        ("request", entry.usage.request): entry.usage
        for entry in one.timeline
        if isinstance(entry, Message) and entry.usage is not None and entry.own
    }


def _told(key: str, one: Session, owners: Owners) -> Session:
    elders = [owners[thing] for thing in _messages(one) if owners[thing] != key]
    is_fork = elders and one.kind == "main" and one.parent is None
    requests = _requests(one)
    own = [usage for thing, usage in requests.items() if owners[thing] == key]
    return msgspec.structs.replace(
        one,
        key=key,
        kind="fork" if is_fork else one.kind,
        parent=elders[0] if is_fork else one.parent,
        usage=one.usage if len(own) == len(requests) else totals(own),
        timeline=tuple(_marked(entry, key, owners) for entry in one.timeline),
    )


def _marked(entry: Entry, key: str, owners: Owners) -> Entry:
    if not isinstance(entry, Message):
        return entry
    things: list[Thing] = [("message", entry.id)]
    if entry.usage is not None:
        things.append(("request", entry.usage.request))
    is_copied = any(owners.get(thing, key) != key for thing in things)
    return msgspec.structs.replace(entry, own=False) if is_copied else entry

"""A reference implementation of ownership between sessions; the archive must give the same result."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, count

import msgspec

from retold.model.session import Entry, Message, Session, Usage, root_hash, sum_usage

TELLING = 16
"""The minimum length of a message id: shorter ids are too common to identify a message."""
Thing = tuple[str, str | None]
"""A message or a request: its kind and its id."""
Owners = Mapping[Thing, str]


def resolve_ownership(sessions: Sequence[Session]) -> dict[str, Session]:
    """Return sessions by key; a message or request in several sessions belongs to the earliest of them.

    Sessions whose own file calls it a copy come last.
    """
    named = _with_own_keys(sessions)
    owners: dict[Thing, str] = {}
    for has_copies in (False, True):
        for key, one in sorted(named.items(), key=lambda item: _age(item[1])):
            for thing, is_copy in (_messages(one) | _requests(one)).items():
                if is_copy == has_copies:
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


def _messages(one: Session) -> dict[Thing, bool]:
    """Return whether the file calls a message a copy, for each message with a telling id."""
    return {
        ("message", entry.id): not entry.own
        for entry in one.timeline
        if isinstance(entry, Message) and len(entry.id or "") >= TELLING
    }


def _requests(one: Session) -> dict[Thing, bool]:
    """Return whether the file calls a request a copy, for each request."""
    return {("request", name): not message.own for name, message in _tellers(one).items()}


def _tellers(one: Session) -> dict[str, Message]:
    """Return the message that tells each request: the last one, and own messages before copied ones."""
    found: dict[str, Message] = {}
    for entry in one.timeline:
        if isinstance(entry, Message) and entry.usage is not None and may_count(entry, entry.usage, one):
            known = found.get(entry.usage.request)
            if known is None or entry.own or not known.own:
                found[entry.usage.request] = entry
    return found


def may_count(message: Message, usage: Usage, one: Session) -> bool:
    """Tell whether a request may count in a session: its own, or a copied one that other sessions may know."""
    return message.own or not (usage.estimated or usage.request.startswith(f"{one.native_id}/"))


def _told(key: str, one: Session, owners: Owners) -> Session:
    elders = [owners[thing] for thing in _messages(one) if owners[thing] != key]
    is_fork = elders and one.kind == "main" and one.parent is None
    requests = _tellers(one)
    own = [
        teller.usage for name, teller in requests.items() if teller.usage and owners["request", name] == key
    ]
    are_as_read = all(teller.own == (owners["request", name] == key) for name, teller in requests.items())
    return msgspec.structs.replace(
        one,
        key=key,
        kind="fork" if is_fork else one.kind,
        parent=elders[0] if is_fork else one.parent,
        usage=one.usage if are_as_read else sum_usage(own),
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

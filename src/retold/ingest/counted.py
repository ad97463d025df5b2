"""What is counted of a conversation, and how conversations share what several of them hold."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, count

import msgspec

from retold.agents.protocol import Source
from retold.model.project import Project, root_hash
from retold.model.request import Request
from retold.model.session import Kind


class Counted(msgspec.Struct, array_like=True, gc=False):
    """A conversation and its requests; copied ones are among them until `settled` finds the owner of each."""

    agent: str
    group: str
    """What all files of the conversation share."""
    key: str
    kind: Kind
    """As its own files tell it: that it is a fork may show only beside others."""
    parent: str | None
    project: Project
    started_at: datetime | None
    ended_at: datetime | None
    path: str
    """The first of its files."""
    requests: list[Request]


class Cluster(msgspec.Struct, frozen=True):
    """The files of one cluster."""

    agent: str
    name: str
    sources: tuple[Source, ...]
    size: int


def joined(clusters: Sequence[Cluster]) -> Cluster:
    """Return clusters of one agent as one."""
    first, sources = clusters[0], [source for one in clusters for source in one.sources]
    return Cluster(first.agent, first.name, tuple(sources), sum(one.size for one in clusters))


class Answer(msgspec.Struct, array_like=True):
    """What came of a cluster: its conversations; None where they have to be read as a whole."""

    place: int
    counted: list[Counted] | None
    proven: dict[str, str] = {}
    """Roots that were found in what was said, by the hashes of their projects."""


def settled(told: Iterable[Counted], proven: Mapping[str, str]) -> Iterator[Counted]:
    """Yield conversations as an archive tells them: placed, each under a key of its own, each request once."""
    found = list(told)
    keys = _keys(found)
    renamed = {one.key: key for one, key in zip(found, keys, strict=True) if one.key != key}
    owners = _owners(found)
    for place, (one, key) in enumerate(zip(found, keys, strict=True)):
        requests = one.requests
        if owners:
            requests = [request for request in requests if owners.get(request.name, place) == place]
        parent, project = renamed.get(one.parent or "", one.parent), _placed(one.project, proven)
        yield msgspec.structs.replace(one, key=key, parent=parent, project=project, requests=requests)


def _keys(found: Iterable[Counted]) -> list[str]:
    """Return a key for each conversation: of several who claim one, the first has it."""
    keys: dict[str, None] = {}
    for one in found:
        keys[next(name for name in _names(one) if name not in keys)] = None
    return list(keys)


def several(answers: Iterable[Answer]) -> Iterator[list[int]]:
    """Yield the clusters of conversations that several of them tell: each has some of its files."""
    places: dict[tuple[str, str], list[int]] = {}
    for answer in answers:
        for one in answer.counted or ():
            places.setdefault((one.agent, one.group), []).append(answer.place)
    yield from (held for held in places.values() if len(held) > 1)


def _names(one: Counted) -> Iterator[str]:
    """Yield keys: with the project's hash behind it, or that of its file's path, where the first is taken."""
    yield one.key
    hashes = (root_hash(f"{one.path}{number or ''}") for number in count())
    yield from (f"{one.key}~{name[:6]}" for name in chain(filter(None, (one.project.hash,)), hashes))


def _owners(found: Sequence[Counted]) -> dict[str, int]:
    """Return the place of the owner of each request that several conversations hold.

    It is the earliest of those that made it; where all copied it, the earliest of all.
    """
    names = [request.name for one in found for request in one.requests]
    shared = (
        {name for name, times in Counter(names).items() if times > 1} if len(set(names)) < len(names) else ()
    )
    owners: dict[str, tuple[bool, tuple[str, str, str], int]] = {}
    for place, one in enumerate(found) if shared else ():
        order = _order(one)
        for request in one.requests:
            if request.name in shared:
                claim = (request.copied, order, place)
                owners[request.name] = min(owners.get(request.name, claim), claim)
    return {name: place for name, (_, _, place) in owners.items()}


def _order(one: Counted) -> tuple[str, str, str]:
    """Return what tells who is earlier, in the words of `settling`."""
    return _time(one.started_at), _time(one.ended_at), one.key


def _time(at: datetime | None) -> str:
    from retold.model.wire import time_text

    return str(None) if at is None else time_text(at).rstrip("Z")


def _placed(project: Project, proven: Mapping[str, str]) -> Project:
    root = proven.get(project.hash or "")
    if root is None or project.evidence not in ("none", "guessed"):
        return project
    return msgspec.structs.replace(project, root=root, evidence="hash")

"""What is counted of a conversation, and how conversations share what several of them hold."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, count

import msgspec

from retold.agents.protocol import Source
from retold.model.project import Project, root_hash
from retold.model.request import Request
from retold.model.session import Kind


class Counted(msgspec.Struct, array_like=True, gc=False):
    """A conversation, and the requests that are its own."""

    agent: str
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


class Answer(msgspec.Struct, array_like=True):
    """What came of a cluster: its conversations; None where they have to be read as a whole."""

    place: int
    counted: list[Counted] | None
    proven: dict[str, str] = {}
    """Roots that were found in what was said, by the hashes of their projects."""


def settled(found: Sequence[Counted], proven: Mapping[str, str]) -> list[Counted]:
    """Return conversations as an archive tells them: placed, each under a key of its own, each request once."""
    keys = list(_keys(found))
    renamed = {one.key: key for one, key in zip(found, keys, strict=True) if one.key != key}
    owners = _owners(found)
    return [
        msgspec.structs.replace(
            one,
            key=key,
            parent=renamed.get(one.parent or "", one.parent),
            project=_placed(one.project, proven),
            requests=[request for request in one.requests if owners[request.name] == place],
        )
        for place, (one, key) in enumerate(zip(found, keys, strict=True))
    ]


def _keys(found: Sequence[Counted]) -> Iterator[str]:
    """Yield a key for each: with the project's hash behind it, or that of its file's path, where it is taken."""
    taken: set[str] = set()
    for one in found:
        told = [one.project.hash] if one.project.hash is not None else []
        hashes = chain(told, (root_hash(f"{one.path}{number or ''}") for number in count()))
        names = chain((one.key,), (f"{one.key}~{name[:6]}" for name in hashes))
        key = next(name for name in names if name not in taken)
        taken.add(key)
        yield key


def _owners(found: Sequence[Counted]) -> dict[str, int]:
    """Return the place of the earliest conversation that holds a request, by the request's name."""
    owners: dict[str, int] = {}
    for place, one in enumerate(found):
        for request in one.requests:
            known = owners.setdefault(request.name, place)
            if known != place and _order(one) < _order(found[known]):
                owners[request.name] = place
    return owners


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

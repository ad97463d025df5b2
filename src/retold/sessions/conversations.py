"""Readings to conversations: those of one cluster, each with the name by which it is known ever after."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import stat

import msgspec

from retold.agents.protocol import Agent, AgentHome, Reading, Source
from retold.archive.rows import stable_uid
from retold.model.problem import Problem
from retold.model.session import Clue, Message, Session, View

Groups = Mapping[str, Sequence[Reading]]
Place = tuple[str, str]
"""A project's folder and the agent's own id of a session in it."""
Fail = Callable[[Sequence[Reading], Exception], None]


def conversation_name(agent: Agent, group: str) -> int:
    """Return the name of a conversation, by what tells it from others of its agent."""
    return stable_uid("session", agent.NAME, group)


def conversations(
    agent: Agent,
    readings: Iterable[Reading],
    shared: "Scraps",
    view: View = "full",
    fail: Fail | None = None,
) -> list[tuple[str, Sequence[Reading], Session]]:
    """Return the conversations of one cluster, each with its group and what it was made from.

    A conversation that the agent fails to join is given to `fail`, with the error, and left out.
    """
    groups, joined = [], []
    for key, group in _grouped(agent, readings, shared):
        try:
            joined.append(agent.join(group, view))
        except Exception as error:
            if fail is None:
                raise
            fail(group, error)
        else:
            groups.append((key, group))
    related = agent.relate(joined)
    return [(key, group, session) for (key, group), session in zip(groups, related, strict=True)]


class Scraps(msgspec.Struct, frozen=True):
    """What files of many conversations say of each."""

    groups: Groups = {}
    keys: Mapping[str, str] = {}
    """The group of every key that the readings have: copies of a log may know a project by different keys."""
    places: Mapping[Place, str] = {}
    """The group of the prompts that were logged for an id in a folder."""

    def at(self, places: Iterable[Place]) -> Iterator[str]:
        """Yield the groups of some folders and ids."""
        return (self.places[place] for place in places if place in self.places)


def scraps(agent: Agent, readings: Iterable[Reading], fail: Fail | None = None) -> Scraps:
    """Return what files of many conversations say of each.

    What the agent fails on is given to `fail`, with the error, and left out.
    """
    by_key: defaultdict[str, list[Reading]] = defaultdict(list)
    for reading in readings:
        try:
            key = agent.group(reading) or reading.source.shown
            list(places(agent, [reading]))  # a failure belongs to this file, not to a later caller
        except Exception as error:
            if fail is None:
                raise
            fail([reading], error)
        else:
            by_key[key].append(reading)
    keys: dict[str, str] = {}
    same_id: defaultdict[str | None, list[str]] = defaultdict(list)
    for key, said in sorted(by_key.items()):
        copied = (
            other for other in same_id[said[0].native_id] if _share_prompt(agent, by_key[other], said, fail)
        )
        keys[key] = next(copied, key) if said[0].native_id is not None else key
        if keys[key] == key:
            same_id[said[0].native_id].append(key)
    groups: dict[str, list[Reading]] = {}
    for key, said in by_key.items():
        groups.setdefault(keys[key], []).extend(said)
    placed = ((place, group) for group, said in groups.items() for place in places(agent, said))
    return Scraps(groups, keys, dict(placed))


def _share_prompt(agent: Agent, one: Sequence[Reading], other: Sequence[Reading], fail: Fail | None) -> bool:
    """Tell whether the same prompt was logged in both: then one log is a copy of the other."""
    return not _prompts(agent, one, fail).isdisjoint(_prompts(agent, other, fail))


def _prompts(agent: Agent, readings: Sequence[Reading], fail: Fail | None) -> set[tuple[object, str]]:
    """Return the prompts in some readings, each with its time; none where the agent cannot join them."""
    try:
        session = agent.join(readings)
    except Exception as error:
        if fail is None:
            raise
        fail(readings, error)
        return set()
    said = (entry for entry in session.timeline if isinstance(entry, Message))
    return {(entry.at, entry.prompt) for entry in said if entry.prompt is not None}


def places(agent: Agent, readings: Iterable[Reading]) -> Iterator[Place]:
    """Yield the folders in which a log may hold prompts of a conversation, each with the id that the log has for it."""
    for reading in readings:
        if reading.native_id is not None and (folder := agent.log_folder(reading)) is not None:
            yield folder, reading.native_id


def _grouped(
    agent: Agent, readings: Iterable[Reading], shared: Scraps
) -> Iterator[tuple[str, Sequence[Reading]]]:
    """Yield the readings of each conversation of a cluster, with what files of many conversations say of it."""
    groups: dict[str, list[Reading]] = defaultdict(list)
    nameless: list[Reading] = []
    for reading in readings:
        key = agent.group(reading)
        (nameless if key is None else groups[key]).append(reading)
    for reading in nameless:
        _home_of(reading, groups).append(reading)
    claims = _claims(agent, groups, shared) if shared.groups else {}
    for key, group in groups.items():
        yield key, [*group, *(said for claimed in claims.get(key, ()) for said in shared.groups[claimed])]


def _claims(agent: Agent, groups: Groups, shared: Scraps) -> dict[str, list[str]]:
    """Return which scraps belong to each conversation.

    A key counts before a folder. Of several sessions with one id in one folder, the one with the most bytes gets them.
    """
    owners = {shared.keys[key]: key for key in groups if key in shared.keys}
    for key, group in sorted(groups.items(), key=lambda one: (-sum(said.size for said in one[1]), one[0])):
        for scrap in shared.at(places(agent, group)):
            owners.setdefault(scrap, key)
    claims: defaultdict[str, list[str]] = defaultdict(list)
    for scrap, key in owners.items():
        claims[key].append(scrap)
    return claims


def _home_of(reading: Reading, groups: dict[str, list[Reading]]) -> list[Reading]:
    """Return the group in which a file bears the same name; one of its own, if none does."""
    name = _bare(reading)
    for group in groups.values():
        if any(_bare(other) == name for other in group):
            return group
    return groups[reading.source.shown]


def _bare(reading: Reading) -> str:
    return reading.source.path.name.partition(".")[0]


def heads(count: int, together: Iterable[Iterable[int]]) -> list[int]:
    """Return, for each of so many places, the first of all that it belongs together with; often that is itself."""
    found = list(range(count))
    for places in together:
        first, *others = sorted({_head(found, place) for place in places})
        for other in others:
            found[other] = first
    return [_head(found, place) for place in range(count)]


def _head(found: list[int], place: int) -> int:
    while found[place] != place:
        place = found[place]
    return place


class Cluster(msgspec.Struct, frozen=True):
    """The files of one cluster."""

    agent: str
    name: str
    sources: tuple[Source, ...]
    size: int


def size_here(source: Source) -> int:
    """Return the bytes of a file on this machine; none of one that nobody may look at."""
    try:
        return stat(source.path).st_size
    except OSError:
        return 0


class Clusters:
    """What was found so far; it grows while homes are looked through."""

    def __init__(self, size_of: Callable[[Source], int] = size_here) -> None:
        self._size_of = size_of
        self.problems: list[tuple[str, Problem]] = []
        """What stood in the way of looking for files, with the agent."""
        self.clues: dict[str, Sequence[Clue]] = {}
        """What the homes say about where projects lie, by home."""
        self.loose: dict[str, list[Source]] = {}
        """Files that hold many conversations, by agent."""

    def found(self, agent: Agent, homes: Iterable[AgentHome]) -> Iterator[Cluster]:
        """Look through homes; yield what they hold."""
        sources: dict[str, Source] = {}
        for home in homes:
            self.clues[str(home.path)] = list(agent.clues(home))
            for found in agent.find(home):
                if isinstance(found, Problem):
                    self.problems.append((agent.NAME, found))
                else:
                    sources.setdefault(str(found.path), found)
        clusters: dict[str | None, list[Source]] = defaultdict(list)
        for source in sources.values():
            clusters[source.cluster].append(source)
        loose = clusters.pop(None, [])
        self.loose[agent.NAME] = sorted(loose, key=lambda source: str(source.path))
        for name, held in clusters.items():
            yield Cluster(agent.NAME, name or "", tuple(held), sum(map(self._size_of, held)))

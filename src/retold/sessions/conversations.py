"""Conversations from readings: the readings of a cluster are grouped by conversation, and each group is joined."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import stat
from typing import NamedTuple

import msgspec

from retold.agents.protocol import Agent, AgentHome, Reading, Source
from retold.archive.rows import stable_uid
from retold.model.problem import Problem
from retold.model.session import Clue, Message, Session, View

LONG_SESSION = 3 << 20
"""Bytes of the files of a long session. Reading so many takes longer than all else that a page needs."""
Groups = Mapping[str, Sequence[Reading]]
OnFailure = Callable[[Sequence[Reading], Exception], None]


class LogPlace(NamedTuple):
    """The folder of a project, and the id under which its log has the prompts of a session."""

    folder: str
    native_id: str


class Conversation(NamedTuple):
    """A conversation of a cluster: the key of its group, its readings, and the session joined from them."""

    group: str
    readings: Sequence[Reading]
    session: Session


def conversation_uid(agent: Agent, group: str) -> int:
    """Return the uid of a conversation, by the key of its group."""
    return stable_uid("session", agent.NAME, group)


def join_conversations(
    agent: Agent,
    readings: Iterable[Reading],
    scraps: "Scraps",
    view: View = "full",
    fail: OnFailure | None = None,
) -> list[Conversation]:
    """Return the conversations of one cluster.

    One that the agent fails to join is given to `fail`, with the error, and left out.
    """
    groups, joined = [], []
    for key, group in _group_readings(agent, readings, scraps):
        try:
            joined.append(agent.join(group, view))
        except Exception as error:
            if fail is None:
                raise
            fail(group, error)
        else:
            groups.append((key, group))
    related = agent.relate(joined)
    return [Conversation(*group, session) for group, session in zip(groups, related, strict=True)]


class Scraps(msgspec.Struct, frozen=True):
    """The readings of files that hold many conversations, by conversation."""

    groups: Groups = {}
    keys: Mapping[str, str] = {}
    """The group of each key of a reading: copies of one log may give a project different keys."""
    places: Mapping[LogPlace, str] = {}
    """The group of the prompts that a log has for an id."""

    def at(self, places: Iterable[LogPlace]) -> Iterator[str]:
        """Yield the groups at some places."""
        return (self.places[place] for place in places if place in self.places)


def group_scraps(agent: Agent, readings: Iterable[Reading], fail: OnFailure | None = None) -> Scraps:
    """Return the readings of files that hold many conversations, by conversation.

    Readings on which the agent fails are given to `fail`, with the error, and left out.
    """
    by_key: defaultdict[str, list[Reading]] = defaultdict(list)
    for reading in readings:
        try:
            key = agent.group_key(reading) or reading.source.display_path
            list(log_places(agent, [reading]))  # a failure belongs to this file, not to a later caller
        except Exception as error:
            if fail is None:
                raise
            fail([reading], error)
        else:
            by_key[key].append(reading)
    keys: dict[str, str] = {}
    same_id: defaultdict[str | None, list[str]] = defaultdict(list)
    for key, group in sorted(by_key.items()):
        native_id = group[0].native_id
        copies = (other for other in same_id[native_id] if _share_prompt(agent, by_key[other], group, fail))
        keys[key] = next(copies, key) if native_id is not None else key
        if keys[key] == key:
            same_id[native_id].append(key)
    groups: dict[str, list[Reading]] = {}
    for key, group in by_key.items():
        groups.setdefault(keys[key], []).extend(group)
    places = {place: key for key, group in groups.items() for place in log_places(agent, group)}
    return Scraps(groups, keys, places)


def _share_prompt(
    agent: Agent, one: Sequence[Reading], other: Sequence[Reading], fail: OnFailure | None
) -> bool:
    """Return whether two logs have the same prompt: then one is a copy of the other."""
    return not _prompts(agent, one, fail).isdisjoint(_prompts(agent, other, fail))


def _prompts(agent: Agent, readings: Sequence[Reading], fail: OnFailure | None) -> set[tuple[object, str]]:
    """Return the prompts in readings with their times; none if the agent cannot join them."""
    try:
        session = agent.join(readings)
    except Exception as error:
        if fail is None:
            raise
        fail(readings, error)
        return set()
    messages = (entry for entry in session.timeline if isinstance(entry, Message))
    return {(message.at, message.prompt) for message in messages if message.prompt is not None}


def log_places(agent: Agent, readings: Iterable[Reading]) -> Iterator[LogPlace]:
    """Yield the places at which a log may hold prompts of a conversation."""
    for reading in readings:
        if reading.native_id is not None and (folder := agent.log_folder(reading)) is not None:
            yield LogPlace(folder, reading.native_id)


def _group_readings(
    agent: Agent, readings: Iterable[Reading], scraps: Scraps
) -> Iterator[tuple[str, Sequence[Reading]]]:
    """Yield the readings of each conversation of a cluster, with its scraps."""
    groups: dict[str, list[Reading]] = defaultdict(list)
    without_key: list[Reading] = []
    for reading in readings:
        key = agent.group_key(reading)
        (without_key if key is None else groups[key]).append(reading)
    for reading in without_key:
        _group_by_file_name(reading, groups).append(reading)
    claims = _claim_scraps(agent, groups, scraps) if scraps.groups else {}
    for key, group in groups.items():
        yield key, [*group, *(scrap for claimed in claims.get(key, ()) for scrap in scraps.groups[claimed])]


def _claim_scraps(agent: Agent, groups: Groups, scraps: Scraps) -> dict[str, list[str]]:
    """Return the scraps of each conversation.

    A key counts before a folder. Of several sessions with one id in one folder, the one with the most bytes gets them.
    """
    owners = {scraps.keys[key]: key for key in groups if key in scraps.keys}
    for key, group in sorted(groups.items(), key=lambda one: (-sum(part.size for part in one[1]), one[0])):
        for scrap in scraps.at(log_places(agent, group)):
            owners.setdefault(scrap, key)
    claims: defaultdict[str, list[str]] = defaultdict(list)
    for scrap, key in owners.items():
        claims[key].append(scrap)
    return claims


def _group_by_file_name(reading: Reading, groups: dict[str, list[Reading]]) -> list[Reading]:
    """Return the group that has a file of the same name; a new one if none has."""
    name = _file_stem(reading)
    for group in groups.values():
        if any(_file_stem(other) == name for other in group):
            return group
    return groups[reading.source.display_path]


def _file_stem(reading: Reading) -> str:
    return reading.source.path.name.partition(".")[0]


def merge_sets(count: int, sets: Iterable[Iterable[int]]) -> list[int]:
    """Return for each of the first numbers the least number that it shares sets with, directly or through others."""
    heads = list(range(count))
    for one in sets:
        first, *others = sorted({_head(heads, number) for number in one})
        for other in others:
            heads[other] = first
    return [_head(heads, number) for number in range(count)]


def _head(heads: list[int], number: int) -> int:
    while heads[number] != number:
        number = heads[number]
    return number


class Cluster(msgspec.Struct, frozen=True):
    """The files of one cluster."""

    agent: str
    name: str
    sources: tuple[Source, ...]
    size: int


def local_size(source: Source) -> int:
    """Return the bytes of a file on this machine; 0 for one that cannot be looked at."""
    try:
        return stat(source.path).st_size
    except OSError:
        return 0


class ClusterFinder:
    """Finds the clusters in the homes of agents."""

    def __init__(self, size_of: Callable[[Source], int] = local_size) -> None:
        self._size_of = size_of
        self.problems: list[tuple[str, Problem]] = []
        """The problems of finding files, with the agent."""
        self.clues: dict[str, Sequence[Clue]] = {}
        """The clues of each home about the folders of its projects."""
        self.shared_files: dict[str, list[Source]] = {}
        """The files of each agent that hold many conversations."""

    def find(self, agent: Agent, homes: Iterable[AgentHome]) -> Iterator[Cluster]:
        """Yield the clusters in homes of an agent."""
        sources: dict[str, Source] = {}
        for home in homes:
            self.clues[str(home.path)] = list(agent.find_clues(home))
            for source in agent.find_sources(home):
                if isinstance(source, Problem):
                    self.problems.append((agent.NAME, source))
                else:
                    sources.setdefault(str(source.path), source)
        clusters: dict[str | None, list[Source]] = defaultdict(list)
        for source in sources.values():
            clusters[source.cluster].append(source)
        self.shared_files[agent.NAME] = sorted(clusters.pop(None, []), key=lambda source: str(source.path))
        for name, files in clusters.items():
            yield Cluster(agent.NAME, name or "", tuple(files), sum(map(self._size_of, files)))

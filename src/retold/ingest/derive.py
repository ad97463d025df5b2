"""Readings to conversations: those of one cluster, each with the name by which it is known ever after."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from retold.agents.protocol import Agent, Reading
from retold.archive.rows import name_of
from retold.model.session import Session, View

Groups = Mapping[str, Sequence[Reading]]
Fail = Callable[[Sequence[Reading], Exception], None]


def conversation_name(agent: Agent, group: str) -> int:
    """Return the name of a conversation, by what tells it from others of its agent."""
    return name_of("session", agent.NAME, group)


def conversations(
    agent: Agent, readings: Iterable[Reading], shared: Groups, view: View = "full", fail: Fail | None = None
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


def scraps(agent: Agent, readings: Iterable[Reading]) -> dict[str, list[Reading]]:
    """Return what files of many conversations say of each."""
    shared: dict[str, list[Reading]] = defaultdict(list)
    for reading in readings:
        shared[agent.group(reading) or reading.source.shown].append(reading)
    return dict(shared)


def _grouped(
    agent: Agent, readings: Iterable[Reading], shared: Groups
) -> Iterator[tuple[str, Sequence[Reading]]]:
    """Yield the readings of each conversation of a cluster, with what files of many conversations say of it."""
    groups: dict[str, list[Reading]] = defaultdict(list)
    nameless: list[Reading] = []
    for reading in readings:
        key = agent.group(reading)
        (nameless if key is None else groups[key]).append(reading)
    for reading in nameless:
        _home_of(reading, groups).append(reading)
    for key, group in groups.items():
        yield key, [*group, *shared.get(key, ())]


def _home_of(reading: Reading, groups: dict[str, list[Reading]]) -> list[Reading]:
    """Return the group in which a file bears the same name; one of its own, if none does."""
    name = _bare(reading)
    for group in groups.values():
        if any(_bare(other) == name for other in group):
            return group
    return groups[reading.source.shown]


def _bare(reading: Reading) -> str:
    return reading.source.path.name.partition(".")[0]

"""Which conversation of the archive each logged prompt belongs to."""

import os
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import msgspec

from retold.agents.protocol import Agent, Reading
from retold.archive.queries.lookups import logged_sessions, recorded_with_id
from retold.archive.store import Store, as_path
from retold.sessions.conversations import Place, Scraps, conversation_name, places


class Owned(msgspec.Struct, frozen=True):
    """What files of many conversations say, by the name of the conversation that it belongs to."""

    said: Mapping[int, Sequence[Reading]]
    former: Mapping[int, int]
    """Names under which the archive lists the same prompts a second time, each with the name of the conversation."""


def owned(record: Store, agent: Agent, shared: Scraps, known: Mapping[int, str | None]) -> Owned:
    """Return who owns what; `known` are the clusters of all sessions of the agent."""
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for key, group in shared.keys.items():
        keys[group].append(key)
    said: defaultdict[int, list[Reading]] = defaultdict(list)
    former: dict[int, int] = {}
    owners: dict[Place, int] = {}
    for group, readings in shared.groups.items():
        names = [conversation_name(agent, key) for key in (group, *keys[group])]
        recorded = next((name for name in names if known.get(name) is not None), None)
        owner = _owner_by_folder(record, agent, readings) if recorded is None else recorded
        owner = names[0] if owner is None else owner
        said[owner] += readings
        former |= {name: owner for name in names if name != owner and known.get(name, "") is None}
        owners |= dict.fromkeys(places(agent, readings), owner)
    current = {conversation_name(agent, key) for key in shared.keys}
    if any(cluster is None and name not in current for name, cluster in known.items()):
        former |= _renamed(record, agent, current, owners)
    return Owned(said, former)


def _renamed(
    record: Store, agent: Agent, current: Collection[int], owners: Mapping[Place, int]
) -> dict[int, int]:
    """Return the names that the log of a folder gave its conversations before, as under an earlier marker of the project."""
    return {
        name: owner
        for name, native_id, path in logged_sessions(record, agent.NAME)
        if name not in current
        and (owner := owners.get((os.path.dirname(as_path(path)), native_id))) is not None
        and name != owner
    }


def _owner_by_folder(record: Store, agent: Agent, readings: Sequence[Reading]) -> int | None:
    """Return the session that has files in the same folder and the same id."""
    for folder, native_id in places(agent, readings):
        for name, path in recorded_with_id(record, agent.NAME, native_id):
            if as_path(path).startswith(folder + os.sep):
                return name
    return None

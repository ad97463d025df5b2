"""A fake agent for tests of the steps after reading: its files are sessions in their JSON form."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import msgspec
import pytest

from retold.agents.protocol import (
    Agent,
    AgentConnection,
    AgentHome,
    ConnectPlan,
    Ghost,
    HookCall,
    HookPlan,
    Leftover,
    LostSession,
    Reading,
    RestoreAdditions,
    RestoreRefusal,
    RetentionLimit,
    Source,
    Target,
    Threat,
)
from retold.agents.registry import AGENTS
from retold.model.problem import Problem
from retold.model.serialization import decode_session
from retold.model.session import Clue, Session, View
from retold.reading.disk import DISK, Disk, read_bytes
from support.session_json import session_json

NAME = PROGRAM = PACKAGE = "made"
HOME_VARIABLE = "MADE_HOME"


@contextmanager
def registered() -> Iterator[None]:
    """Register this agent with retold until the block ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(AGENTS, NAME, cast("Agent", sys.modules[__name__]))
        yield


def write(home: Path, name: str, session: Session) -> None:
    """Write a session to a file in a home."""
    home.mkdir(exist_ok=True)
    (home / name).write_bytes(session_json(session))


def find_homes(env: Mapping[str, str], disk: Disk = DISK) -> Iterator[AgentHome]:
    yield AgentHome(Path(env[HOME_VARIABLE]), Path(env[HOME_VARIABLE]), disk=disk)


def find_home(folder: Path, disk: Disk = DISK) -> AgentHome | None:  # noqa: ARG001 - required by the Agent protocol
    return None


def find_sources(home: AgentHome) -> Iterator[Source | Problem]:
    for entry in home.disk.entries(str(home.path)):
        yield Source(Path(entry.path), home, entry.name)


def cluster_of(native_id: str) -> str:
    return native_id


def find_clues(home: AgentHome) -> Iterator[Clue]:  # noqa: ARG001 - required by the Agent protocol
    return iter(())


def read(
    source: Source,
    earlier: Sequence[Reading] = (),  # noqa: ARG001 - required by the Agent protocol
) -> Sequence[Reading] | Problem:
    file = read_bytes(source.path, source.disk)
    if isinstance(file, Problem):
        return file
    session = decode_session(file.data)
    return [Reading(source, NAME, session.native_id, len(file.data), file.modified_at, session, ())]


def group_key(reading: Reading) -> str | None:
    return reading.source.display_path


def join(readings: Sequence[Reading], view: View = "full") -> Session:
    session: Session = readings[0].state
    return msgspec.structs.replace(session, view=view)


def relate(sessions: Sequence[Session]) -> Sequence[Session]:
    return sessions


def find_ghosts(home: AgentHome) -> Iterator[Ghost]:  # noqa: ARG001 - required by the Agent protocol
    return iter(())


def plan_restore(lost: LostSession, target: Target) -> RestoreAdditions | RestoreRefusal:  # noqa: ARG001 - required by the Agent protocol
    return RestoreRefusal("made up")


def resume_command(native_id: str) -> Sequence[str]:
    return ("made", native_id)


def plan_hooks(home: AgentHome, call: HookCall) -> HookPlan | None:  # noqa: ARG001 - required by the Agent protocol
    return None


def plan_connection(home: AgentHome, connection: AgentConnection) -> ConnectPlan:  # noqa: ARG001 - required by the Agent protocol
    return ConnectPlan(home.path, (), (), "/recall", is_trust_needed=False)


def read_retention_limit(home: AgentHome) -> RetentionLimit:  # noqa: ARG001 - required by the Agent protocol
    return RetentionLimit()


def find_threats(home: AgentHome) -> Iterator[Threat]:  # noqa: ARG001 - required by the Agent protocol
    return iter(())


def find_leftovers(home: AgentHome) -> Iterator[Leftover]:  # noqa: ARG001 - required by the Agent protocol
    return iter(())

"""What there is to judge: the agents' homes as they are, and what the archive holds of them. Everything is only read."""

import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from retold.agents.protocol import Agent, AgentHome, Source
from retold.agents.registry import AGENTS
from retold.archive.database import RetoldError
from retold.archive.examination import Fault, damage, examine
from retold.archive.keyed_hashes import HiddenPaths
from retold.archive.queries.listing import count_sessions
from retold.archive.queries.lookups import held_files, own_files, owned_files
from retold.archive.store import Store, exists
from retold.archive.sync_state import SOON
from retold.config import Config, read_config, retold_home
from retold.maintenance.hooks import CALLING, hooks
from retold.maintenance.timers.machine import Machine
from retold.model.problem import Problem
from retold.reading.disk import DISK, printable
from retold.search import dates
from retold.synchronization.discovery import homes_of
from retold.synchronization.fingerprints import file_answer


class ArchivedFile(msgspec.Struct, frozen=True):
    """What the archive has of a file."""

    home: str
    status: str
    """Size, time and identity of the file when it was read, as one text."""
    refusal: str | None
    is_kept: bool


class Archived(msgspec.Struct, frozen=True):
    """A session of the archive."""

    key: str
    agent: str
    native_id: str | None
    kind: str
    title: str | None
    is_spoken: bool
    """Whether it is a conversation; there is nothing to find about one in which nobody spoke."""
    files: tuple[tuple[str, str], ...]
    """Path and home of each that is its own; of logs in which many sessions are, only where it has no other."""

    @property
    def is_main(self) -> bool:
        """Whether it is a conversation by itself, with files of its own."""
        return self.is_spoken and self.kind in ("main", "fork")

    @property
    def name(self) -> str:
        """What a person knows it by."""
        return self.title or self.key


class SurveyedHome(msgspec.Struct, frozen=True):
    """A home of an agent, with the files in it: path, and size, time and identity as one text."""

    agent: Agent
    home: AgentHome
    files: Mapping[str, str | None]
    problems: tuple[Problem, ...]
    is_kept: bool
    """Whether the agent itself calls retold, at the end of every session."""

    @property
    def is_own(self) -> bool:
        """Whether the agent of this machine works in it: in a labelled one, another machine's does or did."""
        return self.home.label is None

    @property
    def shown(self) -> str:
        """Its path, as it is told."""
        return printable(self.home.path)


class Survey(msgspec.Struct, frozen=True):
    """All that findings are made from."""

    folder: str
    now: datetime
    places: Sequence[SurveyedHome]
    config: Config
    trouble: str | None = None
    """Why `config.toml` cannot be used."""
    record: Store | None = None
    stopped: str | None = None
    """Why the archive cannot be opened or read, if there is one."""
    held: Mapping[str, ArchivedFile] = {}
    sessions: Sequence[Archived] = ()
    hidden: HiddenPaths | None = None
    faults: Sequence[Fault] = ()
    """What an examination of the archive found."""

    @property
    def conversations(self) -> int:
        """How many conversations the archive has, as every list counts them."""
        return 0 if self.record is None or self.stopped is not None else count_sessions(self.record)

    @property
    def soon(self) -> datetime:
        """Until when a deletion is worth a word."""
        return self.now + timedelta(seconds=SOON)

    def is_archived(self, path: str, answer: str | None) -> bool:
        """Tell whether the archive has a file as it is now."""
        held = self.held.get(path)
        return held is not None and held.is_kept and answer == held.status

    def is_known(self, path: str, answer: str | None) -> bool:
        """Tell whether a sync has met a file as it is now, whatever it made of it."""
        held = self.held.get(path) or self._hidden(path)
        return held is not None and answer == held.status

    def _hidden(self, path: str) -> ArchivedFile | None:
        """Return what the archive has of a file that only forgotten conversations lead to."""
        return self.held.get(self.hidden.stored(path)) if self.hidden else None

    def of_file(self) -> dict[str, Archived]:
        """Return by path the session that a file belongs to; not of files that several share."""
        found: dict[str, Archived] = {}
        shared: set[str] = set()
        for session in self.sessions:
            for path, _ in session.files:
                if path in found:
                    shared.add(path)
                found.setdefault(path, session)
        return {path: session for path, session in found.items() if path not in shared}


def survey(env: Mapping[str, str], *, is_full: bool = False) -> Survey:
    """Look at everything, or at all but a part of the originals; the caller closes the record."""
    folder = retold_home(env)
    config, trouble = _config(folder)
    kept = {hook.home for hook in hooks(Machine(env, sys.platform)) if hook.state in CALLING}
    places = [place for name in AGENTS for place in _places(AGENTS[name], env, config, kept)]
    now = dates.now()
    empty = Survey(folder, now, places, config, trouble)
    try:
        if not exists(folder):
            return empty
        record = Store(folder)
        faults = tuple(examine(record, is_full=is_full, day=now.toordinal()))
    except (RetoldError, OSError) as error:
        return msgspec.structs.replace(empty, stopped=str(error))
    try:
        held = {path: ArchivedFile(*row) for name in AGENTS for path, *row in held_files(record, name)}
        return Survey(
            folder,
            now,
            places,
            config,
            trouble,
            record,
            None,
            held,
            _sessions(record),
            HiddenPaths(record),
            faults,
        )
    except Exception as error:
        record.connection.close()
        told = str(error) if isinstance(error, RetoldError) else damage(folder)
        if told is None:
            raise
        return msgspec.structs.replace(empty, stopped=told, faults=faults)


def _config(folder: str) -> tuple[Config, str | None]:
    try:
        return read_config(folder), None
    except (RetoldError, OSError, ValueError) as error:
        return Config({}, []), str(error)


def _places(
    agent: Agent, env: Mapping[str, str], config: Config, kept: Collection[str | None]
) -> list[SurveyedHome]:
    given = [(label, Path(home)) for label, home in config.homes.items()]
    homes = homes_of(agent, env, given, DISK)
    return [_place(agent, home, is_kept=str(home.path) in kept) for home in homes]


def _place(agent: Agent, home: AgentHome, *, is_kept: bool) -> SurveyedHome:
    files: dict[str, str | None] = {}
    problems: list[Problem] = []
    for found in agent.find(home):
        if isinstance(found, Source):
            files[str(found.path)] = file_answer(os.fspath(found.path))
        else:
            problems.append(found)
    return SurveyedHome(agent, home, files, tuple(problems), is_kept)


def _sessions(record: Store) -> list[Archived]:
    files: dict[tuple[Any, ...], list[tuple[str, str, bool]]] = {}
    for *session, path, home, is_of_many in owned_files(record):
        files.setdefault((*session,), []).append((path, home, is_of_many))
    return [
        Archived(key, agent, native_id, kind, title, bool(is_spoken), _own(same))
        for (key, agent, native_id, kind, title, is_spoken), same in files.items()
    ]


def _own(files: Sequence[tuple[str, str, bool]]) -> tuple[tuple[str, str], ...]:
    own = tuple((path, home) for path, home, is_of_many in files if not is_of_many)
    return own or tuple((path, home) for path, home, _ in files)


class Standing(msgspec.Struct, frozen=True):
    """A home, and how much of it the archive has."""

    agent: str
    home: str
    files: int
    known: int
    """Those that a sync has met as they are now."""
    is_own: bool
    is_kept: bool


class Room(msgspec.Struct, frozen=True):
    """Bytes that the archive takes, and that are left for it."""

    size: int
    free: int


def standings(survey: Survey) -> Iterator[Standing]:
    """Yield how each home stands that is there."""
    for place in survey.places:
        known = sum(survey.is_known(path, answer) for path, answer in place.files.items())
        if place.files or place.home.path.is_dir():
            yield Standing(
                place.agent.NAME, place.shown, len(place.files), known, place.is_own, place.is_kept
            )


def room(folder: str) -> Room:
    """Return the room that the archive takes and has."""
    size = sum(os.path.getsize(path) for path in own_files(folder))
    return Room(size, shutil.disk_usage(folder).free)

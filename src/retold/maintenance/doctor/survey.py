"""The survey of the doctor: the agents' homes as they are, and what the archive has of them. It only reads."""

import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from retold.agents.protocol import Agent, AgentHome, Source
from retold.agents.registry import AGENTS
from retold.archive.annotations import HiddenPaths
from retold.archive.database import RetoldError
from retold.archive.examination import Fault, examine, find_damage
from retold.archive.queries.listing import count_sessions
from retold.archive.queries.lookups import find_archive_files, load_file_states, load_session_files
from retold.archive.store import Store, archive_exists
from retold.archive.sync_state import SOON
from retold.config import Config, read_config, retold_home
from retold.maintenance.hooks import CALLING_STATES, find_hooks
from retold.maintenance.timers.machine import Machine
from retold.model.problem import Problem
from retold.reading.disk import DISK, printable_path
from retold.search import dates
from retold.synchronization.discovery import find_homes
from retold.synchronization.fingerprints import file_fingerprint


class ArchivedFile(msgspec.Struct, frozen=True):
    """A file that a sync has met."""

    home: str
    status: str
    """Size, time and identity of the file when it was read, as one text."""
    refusal: str | None
    is_kept: bool


class SessionFile(NamedTuple):
    """A file of a session, and the home that it is in."""

    path: str
    home: str


class ArchivedSession(msgspec.Struct, frozen=True):
    """A session of the archive."""

    key: str
    agent: str
    native_id: str | None
    kind: str
    title: str | None
    is_spoken: bool
    """Whether somebody spoke in it; other sessions have no findings."""
    files: tuple[SessionFile, ...]
    """Its own files; files that many sessions share only if it has no other."""

    @property
    def is_main(self) -> bool:
        """Whether it is a conversation with files of its own."""
        return self.is_spoken and self.kind in ("main", "fork")

    @property
    def name(self) -> str:
        """Its title, or else its key."""
        return self.title or self.key

    @property
    def home(self) -> str | None:
        """The home of its first file, as printable text."""
        return printable_path(self.files[0].home) if self.files else None


class SurveyedHome(msgspec.Struct, frozen=True):
    """A home of an agent, with the fingerprints of the files in it by path."""

    agent: Agent
    agent_home: AgentHome
    files: Mapping[str, str | None]
    problems: tuple[Problem, ...]
    has_hook: bool
    """Whether the agent calls this retold at the end of every session."""

    @property
    def is_own(self) -> bool:
        """Whether the agent of this machine works in it; a home with a label is another machine's."""
        return self.agent_home.label is None

    @property
    def display_path(self) -> str:
        """Its path as printable text."""
        return printable_path(self.agent_home.path)


class Survey(msgspec.Struct, frozen=True):
    """Everything that the checks look at."""

    folder: str
    now: datetime
    homes: Sequence[SurveyedHome]
    config: Config
    config_error: str | None = None
    """Why `config.toml` cannot be used."""
    record: Store | None = None
    archive_error: str | None = None
    """Why the archive cannot be opened or read."""
    files: Mapping[str, ArchivedFile] = {}
    sessions: Sequence[ArchivedSession] = ()
    hidden: HiddenPaths | None = None
    faults: Sequence[Fault] = ()
    """The faults that an examination of the archive found."""

    @property
    def conversations(self) -> int:
        """The number of conversations in the archive, as every list counts them."""
        return 0 if self.record is None or self.archive_error is not None else count_sessions(self.record)

    @property
    def soon(self) -> datetime:
        """The time before which a deletion is a finding."""
        return self.now + timedelta(seconds=SOON)

    def is_archived(self, path: str, fingerprint: str | None) -> bool:
        """Return whether the archive has a file as it is now."""
        file = self.files.get(path)
        return file is not None and file.is_kept and fingerprint == file.status

    def is_known(self, path: str, fingerprint: str | None) -> bool:
        """Return whether a sync has met a file as it is now, whatever the result was."""
        file = self.files.get(path)
        if file is None and self.hidden:  # only forgotten conversations lead to it
            file = self.files.get(self.hidden.placeholder(path))
        return file is not None and fingerprint == file.status

    def sessions_by_path(self) -> dict[str, ArchivedSession]:
        """Return the session of each file by path, without files that several sessions share."""
        found: dict[str, ArchivedSession] = {}
        shared: set[str] = set()
        for session in self.sessions:
            for path, _ in session.files:
                if path in found:
                    shared.add(path)
                found.setdefault(path, session)
        return {path: session for path, session in found.items() if path not in shared}


def make_survey(env: Mapping[str, str], *, is_full: bool = False) -> Survey:
    """Survey homes and archive; without `is_full` examine only a part of the originals. The caller closes the record."""
    folder = retold_home(env)
    config, config_error = _read_config(folder)
    hooks = {hook.home for hook in find_hooks(Machine(env, sys.platform)) if hook.state in CALLING_STATES}
    homes = [home for name in AGENTS for home in _survey_homes(AGENTS[name], env, config, hooks)]
    now = dates.now()
    survey = Survey(folder, now, homes, config, config_error)
    try:
        if not archive_exists(folder):
            return survey
        record = Store(folder)
        faults = tuple(examine(record, is_full=is_full, day=now.toordinal()))
    except (RetoldError, OSError) as error:
        return msgspec.structs.replace(survey, archive_error=str(error))
    try:
        return msgspec.structs.replace(
            survey,
            record=record,
            files={
                path: ArchivedFile(*row) for name in AGENTS for path, *row in load_file_states(record, name)
            },
            sessions=_archived_sessions(record),
            hidden=HiddenPaths(record),
            faults=faults,
        )
    except Exception as error:
        record.connection.close()
        damage = str(error) if isinstance(error, RetoldError) else find_damage(folder)
        if damage is None:
            raise
        return msgspec.structs.replace(survey, archive_error=damage, faults=faults)


def _read_config(folder: str) -> tuple[Config, str | None]:
    try:
        return read_config(folder), None
    except (RetoldError, OSError, ValueError) as error:
        return Config({}, []), str(error)


def _survey_homes(
    agent: Agent, env: Mapping[str, str], config: Config, hooks: Collection[str | None]
) -> Iterator[SurveyedHome]:
    for home in find_homes(agent, env, list(config.homes.items()), DISK):
        files: dict[str, str | None] = {}
        problems: list[Problem] = []
        for found in agent.find_sources(home):
            if isinstance(found, Source):
                files[str(found.path)] = file_fingerprint(os.fspath(found.path))
            else:
                problems.append(found)
        yield SurveyedHome(agent, home, files, tuple(problems), str(home.path) in hooks)


def _archived_sessions(record: Store) -> list[ArchivedSession]:
    files: dict[tuple[Any, ...], list[tuple[SessionFile, bool]]] = {}
    for *session, path, home, is_shared in load_session_files(record):
        files.setdefault((*session,), []).append((SessionFile(path, home), is_shared))
    sessions = []
    for (key, agent, native_id, kind, title, is_spoken), found in files.items():
        own = tuple(file for file, is_shared in found if not is_shared) or tuple(file for file, _ in found)
        sessions.append(ArchivedSession(key, agent, native_id, kind, title, bool(is_spoken), own))
    return sessions


class HomeStatus(msgspec.Struct, frozen=True):
    """A home, and the number of its files that are archived."""

    agent: str
    home: str
    files: int
    known: int
    """The files that a sync has met as they are now."""
    is_own: bool
    has_hook: bool


class DiskUsage(msgspec.Struct, frozen=True):
    """The size of the archive and the free space on its disk, in bytes."""

    size: int
    free: int


def home_statuses(survey: Survey) -> Iterator[HomeStatus]:
    """Yield the status of each existing home."""
    for one in survey.homes:
        known = sum(survey.is_known(path, fingerprint) for path, fingerprint in one.files.items())
        if one.files or one.agent_home.path.is_dir():
            yield HomeStatus(
                one.agent.NAME, one.display_path, len(one.files), known, one.is_own, one.has_hook
            )


def disk_usage(folder: str) -> DiskUsage:
    """Return the size of the archive and the free space on its disk."""
    size = sum(os.path.getsize(path) for path in find_archive_files(folder))
    return DiskUsage(size, shutil.disk_usage(folder).free)

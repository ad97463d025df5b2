"""The Agent protocol: the functions of an agent's module, and the values that pass through them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec.structs import replace

from retold.agents.bookmarks import Bookmark
from retold.model.problem import Problem
from retold.model.session import Clue, Session, SourceFile, View
from retold.reading.disk import DISK, Disk, printable_path

NAME = "retold"
"""The name of the server, and of everything that belongs to it, in every agent."""


class ToolServer(msgspec.Struct, frozen=True):
    """The command that starts the server of tools, without a shell."""

    command: str
    arguments: tuple[str, ...]
    env: dict[str, str]
    """Variables that say where things are: agents do not pass on all of theirs."""
    version: str

    @property
    def entry(self) -> dict[str, Any]:
        """The server as every agent's settings describe it."""
        entry = {"command": self.command, "args": list(self.arguments)}
        return {**entry, "env": self.env} if self.env else entry


class Guide(msgspec.Struct, frozen=True):
    """Texts that tell a model about the tools."""

    summary: str
    """One line."""
    occasions: str
    """When to use the tools, on one line."""
    context: str
    recall: str
    """What to do to recall something."""

    def skill(self, signature: str, front_matter: Sequence[str] = (), placeholder: str = "") -> str:
        """Return the signed text of the skill `recall`, with an agent's own lines in front, and its placeholder for arguments."""
        head = "\n".join(["name: recall", f"description: {self.summary} {self.occasions}", *front_matter])
        pieces = [
            f"---\n{head}\n---",
            self.recall,
            *([f"What is asked: {placeholder}"] if placeholder else []),
            f"<!-- {signature} -->",
        ]
        return "\n\n".join(pieces) + "\n"


class AgentConnection(msgspec.Struct, frozen=True):
    """What an agent must know to query retold."""

    server: ToolServer
    guide: Guide
    hooks: dict[str, Any] | None
    """The hooks that call retold at the end of a session, as a file of hooks; None if the settings call it already."""


class OwnFile(msgspec.Struct, frozen=True):
    """A file that belongs to retold alone."""

    path: Path
    text: str


class SettingsListItem(msgspec.Struct, frozen=True):
    """A text in a list in JSON settings that also holds other entries."""

    settings: Path
    keys: tuple[str, ...]
    """The path of keys to the list, the outermost first."""
    value: str


class SettingsTable(msgspec.Struct, frozen=True):
    """A table in TOML settings, under two keys."""

    settings: Path
    keys: tuple[str, str]
    value: dict[str, Any]


class ConnectPlan(msgspec.Struct, frozen=True):
    """The files and settings that make an agent query retold."""

    folder: Path
    """The folder that belongs to retold alone."""
    files: tuple[OwnFile, ...]
    entries: tuple[SettingsListItem | SettingsTable, ...]
    recall: str
    """What a person types in front of the thing to recall."""
    is_trust_needed: bool
    """Whether the agent starts a server only in folders that its user trusts."""


def format_signature(agent: str) -> str:
    """Return the note in every file that retold writes, by which it recognises the file."""
    return f"Written by `retold connect {agent}`, and removed by `retold connect {agent} --remove`."


def format_json(value: dict[str, Any]) -> str:
    """Return a value as the text of a JSON file."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


class AgentHome(msgspec.Struct, frozen=True):
    """A folder in which an agent keeps its sessions; the label distinguishes homes of several machines."""

    path: Path
    sessions: Path
    """The folder that holds the sessions: usually inside the home, but it may be anywhere."""
    label: str | None = None
    disk: Disk = DISK
    """The disk on which all its files are read."""


class Source(msgspec.Struct, frozen=True):
    """A file that may hold conversations."""

    path: Path
    home: AgentHome | None = None
    cluster: str | None = None
    """Shared by all files of a conversation and of its subagents; None for a file that may hold many conversations."""
    is_growing: bool = False
    """Whether the reading shall find places for bookmarks."""

    @property
    def display_path(self) -> str:
        """The path as text for problems and sessions."""
        return printable_path(self.path)

    @property
    def label(self) -> str | None:
        """The label of the home of the file."""
        return None if self.home is None else self.home.label

    def with_disk(self, disk: Disk) -> "Source":
        """Return the same file on another disk; a file without a home stays on this machine's disk."""
        home = self.home
        return self if home is None else replace(self, home=replace(home, disk=disk))

    @property
    def disk(self) -> Disk:
        """The disk on which the file and its neighbours are read."""
        return DISK if self.home is None else self.home.disk


class Reading(msgspec.Struct, frozen=True):
    """The contents of one file about one conversation."""

    source: Source
    format: str
    native_id: str | None
    size: int
    """The number of bytes that were read."""
    modified_at: datetime
    state: Any
    """The folded records. Only the agent looks inside."""
    problems: tuple[Problem, ...]


def source_file(reading: Reading) -> SourceFile:
    """Return the description of a reading's file in a session."""
    return SourceFile(reading.source.label, reading.source.display_path, reading.format, reading.size)


class Ghost(msgspec.Struct, frozen=True):
    """A file without conversation that endangers the real files of the same session."""

    source: Source
    native_id: str
    real: tuple[Path, ...]


class LostSession(msgspec.Struct, frozen=True):
    """An archived conversation to restore."""

    session: Session
    readings: Sequence[Reading]
    files: Sequence[Source]
    """All readable files of the conversation, with side files and the files of its subagents."""


class Target(msgspec.Struct, frozen=True):
    """Where and how to write a conversation."""

    home: AgentHome
    root: str | None
    """The root of the project."""
    at: datetime
    version: str | None = None
    """The version of the agent that will read it; None for the newest."""
    view: View | None = None
    """None for the agent's last view; a view is written even if the agent still has part of the conversation."""
    is_clean: bool = False
    """Whether to rewrite what the agent would not resume well."""


class Addition(msgspec.Struct, frozen=True):
    """A file to add to a home."""

    path: Path
    data: bytes = b""
    source: Source | None = None
    """The file to copy, instead of data."""


class RestoreAdditions(msgspec.Struct, frozen=True):
    """The files to add so that an agent finds a conversation again; none if the agent has it."""

    native_id: str
    """The id by which the agent will know the conversation."""
    additions: tuple[Addition, ...]
    """The file of the conversation itself comes last."""
    view: View = "active"


class RestoreRefusal(msgspec.Struct, frozen=True):
    """The reason why a conversation cannot be restored, on one line."""

    why: str


class HookCall(msgspec.Struct, frozen=True):
    """The command line by which an agent calls retold, for each shell."""

    sh: str
    powershell: str
    is_windows: bool


class HookPlan(msgspec.Struct, frozen=True):
    """An entry for each event under `hooks` in an agent's settings, which makes the agent call retold."""

    settings: Path
    events: tuple[str, ...]
    entry: dict[str, Any]
    connect_file: Path | None = None
    """The file of hooks that `connect` writes; the agent reads it as well."""


class RetentionLimit(msgspec.Struct, frozen=True):
    """How long an agent keeps sessions by the settings of a home."""

    seconds: float | None = None
    """None if it deletes no session for its age."""
    counted_from: Literal["said", "written"] = "said"
    """The start of a session's age: the last recorded time, or the time of the last write to its file."""
    exempt_glob: str | None = None
    """A GLOB pattern of SQLite for names of project folders from which nothing is deleted."""
    problems: tuple[Problem, ...] = ()
    """Settings that could not be understood; the agent's defaults are assumed instead."""


Reason = Literal["expired", "too-many", "unloadable", "subagent", "empty", "nothing-to-resume"]


class Threat(msgspec.Struct, frozen=True):
    """A file that the agent is going to delete."""

    source: Source
    native_id: str | None
    reason: Reason
    at: datetime | None
    """The agent deletes it at its first start after this time; None: at its next start."""
    cause: Path | None = None
    """The file that the reason applies to, if that file takes this one along."""


class Leftover(msgspec.Struct, frozen=True):
    """Something in a home that belongs to no session that is read."""

    path: Path
    kind: Literal["prompts", "outputs", "unread"]
    """Prompts or tool outputs of a session, or something that retold cannot read yet."""
    native_id: str | None = None
    count: int = 1
    """The number of prompts or files."""


class Agent(Protocol):
    """An agent is a module with these functions.

    `env` is an argument. The functions do not look at the process, and at the file system only through a Disk.
    """

    NAME: str
    PROGRAM: str
    """The command that starts it."""
    PACKAGE: str
    """The npm package in which it comes."""

    def find_homes(self, env: Mapping[str, str], disk: Disk = DISK) -> Iterator[AgentHome]:
        """Yield the homes in which this agent keeps its sessions, existing or not."""

    def find_home(self, folder: Path, disk: Disk = DISK) -> AgentHome | None:
        """Return the home that a folder is or contains: another machine's, or a backup's."""

    def find_sources(self, home: AgentHome) -> Iterator[Source | Problem]:
        """Yield every file below the home that may hold conversations; open no session."""

    def cluster_of(self, native_id: str) -> str:
        """Return the cluster of all files of a conversation with this id."""

    def find_clues(self, home: AgentHome) -> Iterator[Clue]:
        """Yield what the home says about the roots of projects."""

    def read(self, source: Source, earlier: Sequence[Reading] = ()) -> Sequence[Reading] | Problem:
        """Read a file; given the reading of its beginning that `open_bookmark` returned, read only what follows.

        A file may hold several conversations. One without any is a Problem. Only reading on from a bookmark may raise.
        """

    def find_bookmarks(self, reading: Reading, session: Session) -> Iterator[Bookmark]:
        """Yield bookmarks from which a growing file may be read on, the best first; `session` was joined of this reading alone.

        Of what such a reading returns, `join` makes the session with its later entries only.
        """

    def open_bookmark(self, source: Source, bookmark: Bookmark) -> Reading:
        """Return the reading of the beginning of a file."""

    def group_key(self, reading: Reading) -> str | None:
        """Return a key shared by all readings of one conversation; None if only the file name assigns it."""

    def log_folder(self, reading: Reading) -> str | None:
        """Return the folder whose log holds prompts under the ids of its sessions.

        A logged prompt and a session below the same folder with the same id are one conversation. None for a subagent,
        whose prompts are not logged, and for agents whose ids need no folder.
        """

    def join(self, readings: Sequence[Reading], view: View = "full") -> Session:
        """Make one Session of all readings of one conversation."""

    def relate(self, sessions: Sequence[Session]) -> Sequence[Session]:
        """Link parents and children among the sessions of one cluster; return the sessions in the same order."""

    def find_ghosts(self, home: AgentHome) -> Iterator[Ghost]:
        """Yield files without conversation that make the agent delete those with it."""

    def plan_restore(self, lost: LostSession, target: Target) -> RestoreAdditions | RestoreRefusal:
        """Return what to write so that the agent lists and resumes a conversation; write nothing."""

    def resume_command(self, native_id: str) -> Sequence[str]:
        """Return the command that resumes a session, to be run in the root of its project."""

    def plan_hooks(self, home: AgentHome, call: HookCall) -> HookPlan | None:
        """Return the hooks that make the agent call retold; None if it has no hooks."""

    def plan_connection(self, home: AgentHome, connection: AgentConnection) -> ConnectPlan:
        """Return what to write so that the agent queries retold for earlier conversations; write nothing."""

    def read_retention_limit(self, home: AgentHome) -> RetentionLimit:
        """Return how long the agent keeps sessions by the settings of a home."""

    def find_threats(self, home: AgentHome) -> Iterator[Threat]:
        """Yield every file of a home that the agent will delete, with the reason and the time."""

    def find_leftovers(self, home: AgentHome) -> Iterator[Leftover]:
        """Yield things in a home of which no session is read: remains of deleted sessions, and unknown formats."""


def load_lazily(package: str, **modules: str) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package, which imports the module of a name when the name is first used.

    Each argument is a module with its names. Reading takes forty modules, finding files takes a few.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return load

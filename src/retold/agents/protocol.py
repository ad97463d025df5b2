"""What every agent's module offers, and the values that pass through it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec.structs import replace

from retold.model.problem import Problem
from retold.model.session import Clue, Session, SourceFile, View
from retold.reading.disk import DISK, Disk, printable

NAME = "retold"
"""What the server, and all that comes with it, is called in every agent."""


class ToolServer(msgspec.Struct, frozen=True):
    """How the server of tools is started: a program and its words, without a shell between."""

    command: str
    arguments: tuple[str, ...]
    env: dict[str, str]
    """Variables that say where things are: agents do not hand on all that they have."""
    version: str

    @property
    def entry(self) -> dict[str, Any]:
        """As every agent's settings have it."""
        told = {"command": self.command, "args": list(self.arguments)}
        return {**told, "env": self.env} if self.env else told


class Guide(msgspec.Struct, frozen=True):
    """What a model is told about the tools."""

    summary: str
    """On one line."""
    occasions: str
    """When to use them, on one line."""
    context: str
    recall: str
    """What to do when something is to be recalled."""

    def skill(self, signed: str, front: Sequence[str] = (), asked: str = "") -> str:
        """Return the skill of that name, signed; an agent may want more in front, and what is asked behind."""
        head = "\n".join(["name: recall", f"description: {self.summary} {self.occasions}", *front])
        pieces = [
            f"---\n{head}\n---",
            self.recall,
            *([f"What is asked: {asked}"] if asked else []),
            f"<!-- {signed} -->",
        ]
        return "\n\n".join(pieces) + "\n"


class AgentConnection(msgspec.Struct, frozen=True):
    """All that an agent has to know so that it asks retold."""

    server: ToolServer
    guide: Guide
    hooks: dict[str, Any] | None
    """What calls retold at the end of a session, as a file of hooks has it; None where the settings call it already."""


class OwnFile(msgspec.Struct, frozen=True):
    """A file that is retold's alone."""

    path: Path
    text: str


class ListItem(msgspec.Struct, frozen=True):
    """A text in a list in JSON settings, which has others' as well."""

    settings: Path
    keys: tuple[str, ...]
    """Where the list is, from the outermost key on."""
    value: str


class SettingsTable(msgspec.Struct, frozen=True):
    """A table in TOML settings, named by two keys."""

    settings: Path
    keys: tuple[str, str]
    value: dict[str, Any]


class ConnectPlan(msgspec.Struct, frozen=True):
    """What has to be written so that an agent asks retold."""

    folder: Path
    """The folder that is retold's alone."""
    files: tuple[OwnFile, ...]
    entries: tuple[ListItem | SettingsTable, ...]
    recall: str
    """What a person types before what is to be recalled."""
    is_trust_needed: bool
    """Whether the agent starts no server in a folder that it was not told to trust."""


def signature(agent: str) -> str:
    """Return what stands in every file of ours, so that it is known again and nobody wonders."""
    return f"Written by `retold connect {agent}`, and removed by `retold connect {agent} --remove`."


def as_json(value: dict[str, Any]) -> str:
    """Return a value as the text of a file."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


class AgentHome(msgspec.Struct, frozen=True):
    """A folder in which an agent keeps its sessions; the label tells homes of several machines apart."""

    path: Path
    sessions: Path
    """The folder in it that holds the sessions; usually one of its own, but it may be anywhere."""
    label: str | None = None
    disk: Disk = DISK
    """Where all its files are read."""


class Source(msgspec.Struct, frozen=True):
    """A file that may hold conversations."""

    path: Path
    home: AgentHome | None = None
    cluster: str | None = None
    """All files of one conversation, and of its subagents, share this; None where a file may hold many."""

    @property
    def shown(self) -> str:
        """The path, as problems and sessions tell it."""
        return printable(self.path)

    @property
    def label(self) -> str | None:
        """The label of the home that it lies in."""
        return None if self.home is None else self.home.label

    def on(self, disk: Disk) -> "Source":
        """Return the same file on another disk; one without a home is on this machine's."""
        home = self.home
        return self if home is None else replace(self, home=replace(home, disk=disk))

    @property
    def disk(self) -> Disk:
        """Where the file is read, and whatever lies around it."""
        return DISK if self.home is None else self.home.disk


class Reading(msgspec.Struct, frozen=True):
    """What one file says about one conversation."""

    source: Source
    format: str
    native_id: str | None
    size: int
    """How many bytes of the file were read."""
    modified_at: datetime
    state: Any
    """What `read` folded the records into: the agent's own, passed back to it and to nobody else."""
    problems: tuple[Problem, ...]


def source_file(reading: Reading) -> SourceFile:
    """Return what a session tells about one of its files."""
    return SourceFile(reading.source.label, reading.source.shown, reading.format, reading.size)


class Ghost(msgspec.Struct, frozen=True):
    """A file without conversation, beside the real files of the same session, which it endangers."""

    source: Source
    native_id: str
    real: tuple[Path, ...]


class Lost(msgspec.Struct, frozen=True):
    """A conversation as the archive has it, to be written back."""

    session: Session
    readings: Sequence[Reading]
    files: Sequence[Source]
    """All files of the conversation, those beside it and those of its subagents as well, where they can be read."""


class Target(msgspec.Struct, frozen=True):
    """Where a conversation is to be written, and how."""

    home: AgentHome
    root: str | None
    """The folder of its project."""
    at: datetime
    version: str | None = None
    """Of the agent that is to find it there; None for the newest."""
    view: View | None = None
    """None for what the agent had last, else this, even if the agent still has something of it."""
    is_clean: bool = False
    """Whether what the agent would not resume well is to be written anew."""


class Addition(msgspec.Struct, frozen=True):
    """A file to be added to a home."""

    path: Path
    data: bytes = b""
    source: Source | None = None
    """What it is a copy of, in place of data."""


class Restored(msgspec.Struct, frozen=True):
    """What has to be added so that an agent finds a conversation again; nothing, where it has it."""

    native_id: str
    """The id by which the agent then knows it."""
    additions: tuple[Addition, ...]
    """The conversation itself comes last."""
    view: View = "active"


class RestoreRefused(msgspec.Struct, frozen=True):
    """Why a conversation cannot be written back, in one line."""

    why: str


class HookCall(msgspec.Struct, frozen=True):
    """How retold is called by an agent: as a line of the shell that the agent uses."""

    sh: str
    powershell: str
    is_windows: bool


class HookPlan(msgspec.Struct, frozen=True):
    """What has to stand in an agent's settings so that it calls retold: under `hooks`, an entry for each event."""

    settings: Path
    events: tuple[str, ...]
    entry: dict[str, Any]
    connected: Path | None = None
    """Where the same stands if `connect` has put it there: a file of ours that the agent reads as well."""


class Limit(msgspec.Struct, frozen=True):
    """How long an agent keeps sessions by itself, as the settings of a home say."""

    seconds: float | None = None
    """None: it deletes none for their age."""
    counted_from: Literal["said", "written"] = "said"
    """From when a session's age counts: from what was recorded last, or from when its file was written to last."""
    spared: str | None = None
    """A pattern, as SQLite's GLOB has it, of the names of project folders from which nothing is deleted."""
    problems: tuple[Problem, ...] = ()
    """Settings that could not be understood; what the agent does by default is then assumed."""


Reason = Literal["expired", "too-many", "unloadable", "subagent", "empty", "nothing-to-resume"]


class Threat(msgspec.Struct, frozen=True):
    """A file that the agent is going to delete by itself."""

    source: Source
    native_id: str | None
    reason: Reason
    at: datetime | None
    """From when on, at the agent's next start; None: whenever it starts next."""
    beside: Path | None = None
    """The file that the reason is true of, where another draws this one along."""


class Remains(msgspec.Struct, frozen=True):
    """Something in a home that no session is read from."""

    path: Path
    kind: Literal["prompts", "outputs", "unread"]
    """Prompts, or tool outputs, of a session; or something that retold cannot read yet."""
    native_id: str | None = None
    count: int = 1
    """How many prompts or files."""


class Agent(Protocol):
    """An agent is a module with these functions.

    `env` is passed in; nothing here looks at the process, nor at the file system but through a Disk.
    """

    NAME: str
    PROGRAM: str
    """The command that starts it."""
    PACKAGE: str
    """The npm package in which it comes."""

    def homes(self, env: Mapping[str, str], disk: Disk = DISK) -> Iterator[AgentHome]:
        """Where this agent keeps its sessions, whether or not the folder is there."""

    def home_in(self, folder: Path, disk: Disk = DISK) -> AgentHome | None:
        """The home that a folder is or holds: another machine's, or a backup's."""

    def find(self, home: AgentHome) -> Iterator[Source | Problem]:
        """Every file below the home that may hold conversations; nothing else is opened."""

    def cluster_of(self, native_id: str) -> str:
        """The cluster that files of a conversation with this id are in, wherever they lie."""

    def clues(self, home: AgentHome) -> Iterator[Clue]:
        """What a home says about where its projects lie."""

    def read(self, source: Source, earlier: Sequence[Reading] = ()) -> Sequence[Reading] | Problem:
        """Read the file; given what an earlier call returned, only what was appended since.

        A file may hold several conversations; one that holds none is a Problem.
        """

    def group(self, reading: Reading) -> str | None:
        """A key that all readings of one conversation share; None for a scrap that only its name places."""

    def log_folder(self, reading: Reading) -> str | None:
        """The folder in which prompts are logged under the ids of its sessions.

        A logged prompt and a session below the same folder that have the same id are one conversation. None for a
        subagent, whose prompts are not logged, and for agents whose ids need no folder.
        """

    def join(self, readings: Sequence[Reading], view: View = "full") -> Session:
        """Make one Session of all readings of one conversation."""

    def relate(self, sessions: Sequence[Session]) -> Sequence[Session]:
        """Link parents and children among the sessions of one cluster, given back one for one, in the same order."""

    def ghosts(self, home: AgentHome) -> Iterator[Ghost]:
        """Files of a home without conversation that make the agent delete those with it."""

    def restore(self, lost: Lost, target: Target) -> Restored | RestoreRefused:
        """What to write so that the agent itself lists and resumes a conversation; nothing is written here."""

    def resume(self, native_id: str) -> Sequence[str]:
        """The command that goes on with a session, run in the folder of its project."""

    def hook_plan(self, home: AgentHome, call: HookCall) -> HookPlan | None:
        """What to write into which settings, so that the agent calls retold; None where it cannot."""

    def connect_plan(self, home: AgentHome, connection: AgentConnection) -> ConnectPlan:
        """What to write so that the agent asks retold for what was said before; nothing is written here."""

    def limit(self, home: AgentHome) -> Limit:
        """How long the agent keeps sessions, as the settings of a home say."""

    def retention(self, home: AgentHome) -> Iterator[Threat]:
        """Every file of a home that the agent will delete some day, and when; nothing is deleted here."""

    def remains(self, home: AgentHome) -> Iterator[Remains]:
        """What lies in a home of which no session is read: left of deleted ones, or not understood yet."""

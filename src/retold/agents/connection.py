"""What passes between retold and an agent that is to ask it: how the server is started, what is said of it, and what to write."""

from pathlib import Path
from typing import Any

import msgspec

NAME = "retold"
"""What the server, and all that comes with it, is called in every agent."""


class Server(msgspec.Struct, frozen=True):
    """How the server of tools is started: a program and its words, without a shell between."""

    command: str
    arguments: tuple[str, ...]
    env: dict[str, str]
    """Variables that say where things are: agents do not hand on all that they have."""
    version: str


class Guide(msgspec.Struct, frozen=True):
    """What a model is told about the tools."""

    summary: str
    """On one line."""
    occasions: str
    """When to use them, on one line."""
    context: str
    recall: str
    """What to do when something is to be recalled."""


class Connection(msgspec.Struct, frozen=True):
    """All that an agent has to know so that it asks retold."""

    server: Server
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


class Table(msgspec.Struct, frozen=True):
    """A table in TOML settings, named by two keys."""

    settings: Path
    keys: tuple[str, str]
    value: dict[str, Any]


class ConnectPlan(msgspec.Struct, frozen=True):
    """What has to be written so that an agent asks retold."""

    folder: Path
    """The folder that is retold's alone."""
    files: tuple[OwnFile, ...]
    entries: tuple[ListItem | Table, ...]
    recall: str
    """What a person types before what is to be recalled."""
    is_trust_needed: bool
    """Whether the agent starts no server in a folder that it was not told to trust."""

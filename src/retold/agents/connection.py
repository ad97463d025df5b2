"""What passes between retold and an agent that is to ask it: how the server is started, what is said of it, and what to write."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

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

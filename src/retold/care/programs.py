"""The agents' programs on this machine: where they are, and which version, without running them."""

import json
import os
import shutil
from collections.abc import Mapping

from retold.agents.protocol import Agent

_HIGHEST = 6
"""How many folders above a program its package may lie."""


def program_of(agent: Agent, env: Mapping[str, str]) -> str | None:
    """Return the path of the program that starts an agent."""
    return shutil.which(agent.PROGRAM, path=env.get("PATH"))


def installed_version(agent: Agent, env: Mapping[str, str]) -> str | None:
    """Return the version of an agent that was installed as an npm package."""
    program = program_of(agent, env)
    folder = os.path.dirname(os.path.realpath(program)) if program else ""
    for _ in range(_HIGHEST):
        told = _package(folder)
        if told.get("name") == agent.PACKAGE and isinstance(told.get("version"), str):
            return str(told["version"])
        folder = os.path.dirname(folder)
    return None


def _package(folder: str) -> dict[str, object]:
    try:
        with open(os.path.join(folder, "package.json"), encoding="utf-8") as file:
            told = json.load(file)
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}

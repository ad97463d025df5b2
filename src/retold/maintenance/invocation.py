"""How retold is called by others: by agents, and by the system's timers."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retold.agents.protocol import HookCall, ToolServer


HOOK, NOW = "--hook", "--now"
NARROW = "project"
"""The scope that the server has if it is told of none."""
_EVERYWHERE = ("HOME", "USERPROFILE", "LOCALAPPDATA")
"""Variables that the system sets, for a timer too."""


def own_command() -> list[str]:
    """Return the command that is running, so that it can be started from anywhere."""
    import shutil

    script = shutil.which(os.path.abspath(sys.argv[0])) if sys.argv[0] else None
    if script is not None and os.path.splitext(os.path.basename(script))[0] == "retold":
        return [script]
    # -P: the folder that an agent works in is nothing to import from.
    return [sys.executable, "-P", "-m", "retold"]


def words(kind: str, env: Mapping[str, str]) -> list[str]:
    """Return the words of a call, with the variables by which everything is found: others may not have them."""
    told = [word for name, value in variables(env).items() for word in ("--with", f"{name}={value}")]
    return [*own_command(), "keep", kind, *told]


def variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return those variables that say where things are, and are set."""
    from retold.agents.registry import AGENTS
    from retold.config import retold_home
    from retold.synchronization.discovery import RecordingEnv

    asked = RecordingEnv(env)
    retold_home(asked)
    for agent in AGENTS.values():
        list(agent.homes(asked))
    names = sorted(str(name) for _, name, value in asked.answers() if value and name not in _EVERYWHERE)
    return {name: os.path.abspath(env[name]) if name == "RETOLD_HOME" else env[name] for name in names}


def hook_call(env: Mapping[str, str], platform: str) -> HookCall:
    """Return the call as a line of each shell; whatever comes of it, the agent must neither hear of it nor fail."""
    import shlex

    from retold.agents.protocol import HookCall

    told = words(HOOK, env)
    return HookCall(
        f"{shlex.join(told)} >/dev/null 2>&1 || true",
        f"& {' '.join(map(_as_powershell, told))} *> $null; exit 0",
        platform == "win32",
    )


def server(env: Mapping[str, str], scope: str, version: str) -> ToolServer:
    """Return how an agent starts the server of tools; no shell stands between."""
    from retold.agents.protocol import ToolServer

    command, *told = own_command()
    wide = () if scope == NARROW else ("--scope", scope)
    return ToolServer(command, (*told, "mcp", *wide), variables(env), version)


def _as_powershell(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"


def as_environment(told: Sequence[str]) -> dict[str, str]:
    """Return the variables that a call carries."""
    return dict(pair.split("=", 1) for pair in told if "=" in pair)

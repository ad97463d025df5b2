"""The command lines by which agents and timers call retold."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retold.agents.protocol import HookCall, ToolServer


HOOK, NOW = "--hook", "--now"
DEFAULT_SCOPE = "project"
"""The scope of the MCP server if none is given."""
_ALWAYS_SET = ("HOME", "USERPROFILE", "LOCALAPPDATA")
"""Variables that the system sets for timers too."""


def own_command() -> list[str]:
    """Return the command that started this process, in a form that works from any folder."""
    import shutil

    script = shutil.which(os.path.abspath(sys.argv[0])) if sys.argv[0] else None
    if script is not None and os.path.splitext(os.path.basename(script))[0] == "retold":
        return [script]
    # -P: do not import from the working directory of an agent.
    return [sys.executable, "-P", "-m", "retold"]


def build_command(kind: str, env: Mapping[str, str]) -> list[str]:
    """Return the words of a call of `retold keep`, with the variables that the caller may not have."""
    options = [word for name, value in variables(env).items() for word in ("--with", f"{name}={value}")]
    return [*own_command(), "keep", kind, *options]


def variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are set and that retold reads to find the archive and the agents' homes."""
    from retold.agents.registry import AGENTS
    from retold.config import retold_home
    from retold.synchronization.discovery import RecordingEnv

    recording = RecordingEnv(env)
    retold_home(recording)
    for agent in AGENTS.values():
        list(agent.find_homes(recording))
    names = sorted(
        str(name) for _, name, value in recording.dependencies() if value and name not in _ALWAYS_SET
    )
    return {name: os.path.abspath(env[name]) if name == "RETOLD_HOME" else env[name] for name in names}


def make_hook_call(env: Mapping[str, str], platform: str) -> HookCall:
    """Return the call of a hook as a line for each shell; it prints nothing and always succeeds."""
    import shlex

    from retold.agents.protocol import HookCall

    words = build_command(HOOK, env)
    return HookCall(
        f"{shlex.join(words)} >/dev/null 2>&1 || true",
        f"& {' '.join(map(_quote_powershell, words))} *> $null; exit 0",
        platform == "win32",
    )


def make_tool_server(env: Mapping[str, str], scope: str, version: str) -> ToolServer:
    """Return the command by which an agent starts the MCP server, without a shell."""
    from retold.agents.protocol import ToolServer

    command, *words = own_command()
    options = () if scope == DEFAULT_SCOPE else ("--scope", scope)
    return ToolServer(command, (*words, "mcp", *options), variables(env), version)


def _quote_powershell(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"


def parse_environment(pairs: Sequence[str]) -> dict[str, str]:
    """Return the variables in the NAME=VALUE options of a call."""
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)

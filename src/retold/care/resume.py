"""Going on with a conversation: the exact command and the folder to run it in, and all that keeps it from harm."""

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence

from retold.archive.database import RetoldError
from retold.archive.store import Store
from retold.care.ghosts import own_homes, remove_ghosts
from retold.care.programs import program_of
from retold.care.restore import RestorePlan, Wish, planned

WISH = Wish(is_clean=True)


def way_on(record: Store, key: str, env: Mapping[str, str]) -> RestorePlan:
    """Return what has to be written before the agent can go on with a session, and resumes it well."""
    return planned(record, key, WISH, env)


def endangered(plan: RestorePlan) -> bool:
    """Tell whether a file without conversation makes the agent delete the session."""
    return any(plan.restored.native_id == ghost.native_id for ghost in plan.agent.ghosts(plan.home))


def clear_ghosts(record: Store, env: Mapping[str, str]) -> int:
    """Remove what makes agents delete sessions; return how many there were."""
    return len(remove_ghosts(record, own_homes(env)))


def run(plan: RestorePlan, env: Mapping[str, str]) -> int:
    """Let the agent go on, in the folder of the project; return its exit code."""
    program = program_of(plan.agent, env)
    if program is None:
        raise RetoldError(f"{plan.agent.PROGRAM} is not on PATH; without it: {command_line(plan)}")
    _, *arguments = plan.agent.resume(plan.restored.native_id)
    child = subprocess.Popen([program, *arguments], cwd=plan.root, env=dict(env))  # noqa: S603 - no shell is between
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the agent
    try:
        return child.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def command_line(plan: RestorePlan) -> str:
    """Return what to type, quoted for the shell."""
    command = quoted(plan.agent.resume(plan.restored.native_id))
    return command if plan.root is None else f"cd {quoted((plan.root,))} && {command}"


def whole_line(plan: RestorePlan, key: str) -> str:
    """Return what to type where something may have to be written back first."""
    line = command_line(plan)
    return f"{quoted(('retold', 'restore', key, '--clean'))} && {line}" if plan.additions else line


def quoted(words: Sequence[str]) -> str:
    """Return words as the shell of this system takes them apart again."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)

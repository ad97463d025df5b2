"""Restore: write a conversation back into its agent's home, so that the agent lists and resumes it; remove ghosts."""

import errno
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from retold.agents.protocol import (
    Addition,
    Agent,
    AgentHome,
    Ghost,
    LostSession,
    RestoreAdditions,
    RestoreRefusal,
    Target,
)
from retold.agents.registry import AGENTS
from retold.archive.database import RetoldError
from retold.archive.queries.lookups import load_latest_original
from retold.archive.store import Store
from retold.model.session import View
from retold.sessions.load import load_for_restore

_COPY_STEP = 1 << 20
_DRAFT = re.compile(r"\.retold-([1-9]\d*)-[0-9a-f]{8}\.part\Z")
"""The end of a draft's name: the id of the process that writes it, and a random number."""


def write_additions(additions: Sequence[Addition], home: AgentHome) -> None:
    """Write files in order; if one cannot be written, remove the others and raise RetoldError."""
    made: list[str] = []
    try:
        for addition in additions:
            _refuse_outside(addition.path, home)
            for folder in _missing_folders(addition.path.parent):
                os.mkdir(folder, 0o700)
                made.append(folder)
            _write(addition)
            made.append(str(addition.path))
    except OSError as error:
        _undo(made)
        raise RetoldError(
            f"{error.filename or addition.path}: {error.strerror}; nothing was written"
        ) from error
    except BaseException:
        _undo(made)
        raise


def remove_drafts(additions: Sequence[Addition], home: AgentHome) -> None:
    """Remove the drafts that killed processes of retold left in a home."""
    for top in {home.sessions, *(addition.path.parent for addition in additions)}:
        for folder, _, names in os.walk(top):
            for name in names:
                found = _DRAFT.search(name)
                if found is not None and not _is_running(int(found[1])):
                    with suppress(OSError):
                        os.unlink(os.path.join(folder, name))


def _is_running(process: int) -> bool:
    """Return whether a process with this id may be running."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # a process of another user
        return True
    return True


def _refuse_outside(path: Path, home: AgentHome) -> None:
    """Raise RetoldError if a path leads out of the home, for example through a link."""
    nearest = next(folder for folder in path.parents if folder.exists() or folder.is_symlink())
    bounds = [os.path.realpath(home.path), os.path.realpath(home.sessions)]
    real = os.path.join(os.path.realpath(nearest), os.path.relpath(path, nearest))
    if not any(os.path.commonpath([real, bound]) == bound for bound in bounds if _is_same_drive(real, bound)):
        raise RetoldError(f"{path} would lie outside {home.path}; nothing was written")


def _is_same_drive(path: str, bound: str) -> bool:
    return os.path.splitdrive(path)[0] == os.path.splitdrive(bound)[0]


def _missing_folders(folder: Path) -> list[str]:
    return [str(one) for one in reversed((folder, *folder.parents)) if not one.exists()]


def _write(addition: Addition) -> None:
    draft = (
        f"{addition.path}.retold-{os.getpid()}-{os.urandom(4).hex()}.part"  # agents do not look at such names
    )
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            for piece in _pieces(addition):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        _publish(draft, str(addition.path))
    finally:
        if os.path.lexists(draft):
            os.unlink(draft)


def _publish(draft: str, path: str) -> None:
    """Give a draft its final name, unless a file has that name."""
    try:
        os.link(draft, path)
    except (AttributeError, NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (
            errno.EPERM,
            errno.ENOTSUP,
            errno.EACCES,
            errno.EMLINK,
        ):
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from error
        os.rename(draft, path)  # the file system has no hard links; on Windows rename never replaces a file


def _pieces(addition: Addition) -> Iterator[bytes]:
    if addition.source is None:
        yield addition.data
        return
    file = addition.source.disk.open(str(addition.source.path))
    try:
        while data := file.read(_COPY_STEP):
            yield data
    finally:
        file.close()


def _undo(made: Sequence[str]) -> None:
    for path in reversed(made):
        try:
            os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
        except OSError:
            continue  # the folder is no longer empty


_HIGHEST = 6
"""The number of folders above a program in which its package is looked for."""


def find_program(agent: Agent, env: Mapping[str, str]) -> str | None:
    """Return the path of an agent's program, or None."""
    return shutil.which(agent.PROGRAM, path=env.get("PATH"))


def find_installed_version(agent: Agent, env: Mapping[str, str]) -> str | None:
    """Return the version of an agent that is installed as an npm package, or None."""
    program = find_program(agent, env)
    folder = os.path.dirname(os.path.realpath(program)) if program else ""
    for _ in range(_HIGHEST):
        package = _read_package(folder)
        if package.get("name") == agent.PACKAGE and isinstance(package.get("version"), str):
            return str(package["version"])
        folder = os.path.dirname(folder)
    return None


def _read_package(folder: str) -> dict[str, object]:
    try:
        with open(os.path.join(folder, "package.json"), encoding="utf-8") as file:
            package = json.load(file)
    except (OSError, ValueError):
        return {}
    return package if isinstance(package, dict) else {}


_QUIET, _PATIENCE, _STEP = 2.0, 15.0, 0.1
"""Seconds without a change that a folder needs before we write, seconds to wait for them, and between two checks."""


class RestoreOptions(msgspec.Struct, frozen=True):
    """The options of a restore."""

    home: str | None = None
    """A folder that is or contains the agent's home; None for the agent's own."""
    project: str | None = None
    """The folder of the project; None for the recorded one."""
    version: str | None = None
    view: View | None = None
    is_clean: bool = False


class RestorePlan(msgspec.Struct, frozen=True):
    """The files to write, and their home."""

    agent: Agent
    home: AgentHome
    root: str | None
    restored: RestoreAdditions

    @property
    def additions(self) -> tuple[Addition, ...]:
        """The files, the conversation last."""
        return self.restored.additions


def plan_restore(record: Store, key: str, wish: RestoreOptions, env: Mapping[str, str]) -> RestorePlan:
    """Return the plan of a restore; raise RetoldError if the conversation cannot be restored."""
    found = load_for_restore(record, key)
    if found is None:
        raise RetoldError(f"no session {key} in the archive")
    agent = AGENTS[found.session.agent]
    home = _home(agent, wish, env)
    root = _root(found, wish)
    version = wish.version or find_installed_version(agent, env)
    target = Target(home, root, datetime.now(UTC), version, wish.view, wish.is_clean)
    restored = agent.plan_restore(found, target)
    if isinstance(restored, RestoreRefusal):
        raise RetoldError(restored.why)
    if restored.native_id.startswith("-"):
        raise RetoldError(f"{key}: the agent would take its id for an option: {restored.native_id}")
    return RestorePlan(agent, home, root, restored)


def write_plan(plan: RestorePlan) -> None:
    """Write the files of a plan, once nothing else writes to their folder."""
    remove_drafts(plan.additions, plan.home)
    if plan.additions:
        _wait_for_quiet(plan.additions[-1].path.parent)
        write_additions(plan.additions, plan.home)


def _home(agent: Agent, wish: RestoreOptions, env: Mapping[str, str]) -> AgentHome:
    if wish.home is None:
        home = next(agent.find_homes(env))
    else:
        given = os.path.abspath(wish.home)
        home = agent.find_home(Path(given)) or next(agent.find_homes({"HOME": given, "USERPROFILE": given}))
    for folder in (Path(wish.home) if wish.home else home.path, home.path, home.sessions):
        if folder.exists() and not folder.is_dir():
            raise RetoldError(f"{folder} is no folder; nothing was written")
    return home


def _root(found: LostSession, wish: RestoreOptions) -> str | None:
    root = os.path.realpath(wish.project) if wish.project else found.session.project.root
    if root is not None and not os.path.isdir(root):
        raise RetoldError(
            f"the folder of its project is gone ({root}): make it again, or name another with --project; nothing was written"
        )
    return root


def _wait_for_quiet(folder: Path) -> None:
    """Wait until a folder has not changed for two seconds: an agent may be writing to it."""
    ends = time.monotonic() + _PATIENCE
    while time.time() - _last_written(folder) < _QUIET:
        if time.monotonic() > ends:
            raise RetoldError(
                f"{folder} is being written to by a running agent: end it first; nothing was written"
            )
        time.sleep(_STEP)


def _last_written(folder: Path) -> float:
    try:
        with os.scandir(folder) as entries:
            return max((entry.stat(follow_symlinks=False).st_mtime for entry in entries), default=0.0)
    except OSError:
        return 0.0


def find_own_homes(env: Mapping[str, str]) -> Iterator[tuple[Agent, AgentHome]]:
    """Yield the existing homes of the agents of this machine."""
    for agent in AGENTS.values():
        yield from ((agent, home) for home in agent.find_homes(env) if os.path.isdir(home.path))


def remove_ghosts(record: Store, homes: Iterable[tuple[Agent, AgentHome]]) -> list[Ghost]:
    """Remove the ghosts beside existing files of which the archive has every byte; return them."""
    return [
        ghost
        for agent, home in homes
        for ghost in list(agent.find_ghosts(home))
        if _is_removed(record, agent, ghost)
    ]


def _is_removed(record: Store, agent: Agent, ghost: Ghost) -> bool:
    path = str(ghost.source.path)
    kept = load_latest_original(record, agent.NAME, path)
    try:
        seen = os.lstat(path)
        if kept is None or (seen.st_size, seen.st_mtime_ns) != kept[1:]:
            return False
        with open(path, "rb") as file:
            if file.read() != record.originals.read(kept[0]):
                return False
        now = os.lstat(path)
        is_same = (now.st_ino, now.st_size, now.st_mtime_ns) == (seen.st_ino, seen.st_size, seen.st_mtime_ns)
        if not is_same or not any(real.is_file() for real in ghost.real):
            return False
        os.unlink(path)
    except OSError:
        return False
    return True


RESUME_OPTIONS = RestoreOptions(is_clean=True)


def plan_resume(record: Store, key: str, env: Mapping[str, str]) -> RestorePlan:
    """Return the plan of what must be written before the agent can resume a session well."""
    return plan_restore(record, key, RESUME_OPTIONS, env)


def is_endangered(plan: RestorePlan) -> bool:
    """Return whether a ghost makes the agent delete the session."""
    return any(plan.restored.native_id == ghost.native_id for ghost in plan.agent.find_ghosts(plan.home))


def run_agent(plan: RestorePlan, env: Mapping[str, str]) -> int:
    """Run the agent in the folder of the project to resume the session; return its exit code."""
    program = find_program(plan.agent, env)
    if program is None:
        raise RetoldError(f"{plan.agent.PROGRAM} is not on PATH; without it: {format_command(plan)}")
    _, *arguments = plan.agent.resume_command(plan.restored.native_id)
    child = subprocess.Popen([program, *arguments], cwd=plan.root, env=dict(env))  # noqa: S603 - without a shell
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the agent
    try:
        return child.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def format_command(plan: RestorePlan) -> str:
    """Return the command that resumes the session, quoted for the shell."""
    command = quote_words(plan.agent.resume_command(plan.restored.native_id))
    return command if plan.root is None else f"cd {quote_words((plan.root,))} && {command}"


def format_full_command(plan: RestorePlan, key: str) -> str:
    """Return the command that resumes the session, after a restore if one is needed."""
    line = format_command(plan)
    return f"{quote_words(('retold', 'restore', key, '--clean'))} && {line}" if plan.additions else line


def quote_words(words: Sequence[str]) -> str:
    """Return words quoted for the shell of this system."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)

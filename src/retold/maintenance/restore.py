"""A conversation written back into its agent's home, so that the agent itself lists it and goes on with it."""

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

from retold.agents.protocol import Addition, Agent, AgentHome, Ghost, Lost, Restored, RestoreRefused, Target
from retold.agents.registry import AGENTS
from retold.archive.database import RetoldError
from retold.archive.queries.lookups import latest_at
from retold.archive.store import Store
from retold.model.session import View
from retold.sessions.load import load_for_restore

_COPY_STEP = 1 << 20
_DRAFT = re.compile(r"\.retold-([1-9]\d*)-[0-9a-f]{8}\.part\Z")
"""How the name of a file ends while it is written: the process that writes it, and a random number."""


def add(additions: Sequence[Addition], home: AgentHome) -> None:
    """Write files in their order; what was written is taken back if one of them cannot be."""
    made: list[str] = []
    try:
        for addition in additions:
            _check(addition.path, home)
            for folder in _missing_folders(addition.path.parent):
                os.mkdir(folder, 0o700)
                made.append(folder)
            _write(addition)
            made.append(str(addition.path))
    except OSError as error:
        _take_back(made)
        raise RetoldError(
            f"{error.filename or addition.path}: {error.strerror}; nothing was written"
        ) from error
    except BaseException:
        _take_back(made)
        raise


def remove_drafts(additions: Sequence[Addition], home: AgentHome) -> None:
    """Remove the drafts that processes of retold left in a home when they were killed."""
    for top in {home.sessions, *(addition.path.parent for addition in additions)}:
        for folder, _, names in os.walk(top):
            for name in names:
                found = _DRAFT.search(name)
                if found is not None and not _is_running(int(found[1])):
                    with suppress(OSError):  # it cannot be removed, or another process did it
                        os.unlink(os.path.join(folder, name))


def _is_running(process: int) -> bool:
    """Tell whether there is a process of this number; where the system cannot be asked, there may be."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        return True
    return True


def _check(path: Path, home: AgentHome) -> None:
    """Refuse what would lie outside the home: a link in it may lead anywhere."""
    nearest = next(folder for folder in path.parents if folder.exists() or folder.is_symlink())
    bounds = [os.path.realpath(home.path), os.path.realpath(home.sessions)]
    real = os.path.join(os.path.realpath(nearest), os.path.relpath(path, nearest))
    if not any(os.path.commonpath([real, bound]) == bound for bound in bounds if _is_near(real, bound)):
        raise RetoldError(f"{path} would lie outside {home.path}; nothing was written")


def _is_near(path: str, bound: str) -> bool:
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
    """Give a file its name, unless another has it."""
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
        os.rename(draft, path)  # where there are no links; on Windows this never replaces


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


def _take_back(made: Sequence[str]) -> None:
    for path in reversed(made):
        try:
            os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
        except OSError:
            continue  # something else lies in it by now


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


_QUIET, _PATIENCE, _STEP = 2.0, 15.0, 0.1
"""Seconds for which nothing may have been written where we write, and how long that is waited for."""


class Wish(msgspec.Struct, frozen=True):
    """How a conversation is to be written back."""

    home: str | None = None
    """A folder that is or holds the agent's home; None for the agent's own."""
    project: str | None = None
    """Where the project lies now; None for where it lay."""
    version: str | None = None
    view: View | None = None
    is_clean: bool = False


class RestorePlan(msgspec.Struct, frozen=True):
    """What will be written, and where."""

    agent: Agent
    home: AgentHome
    root: str | None
    restored: Restored

    @property
    def additions(self) -> tuple[Addition, ...]:
        """The files, the conversation last."""
        return self.restored.additions


def planned(record: Store, key: str, wish: Wish, env: Mapping[str, str]) -> RestorePlan:
    """Return what has to be written; raises Stopped where it cannot be, with why."""
    found = load_for_restore(record, key)
    if found is None:
        raise RetoldError(f"no session {key} in the archive")
    agent = AGENTS[found.session.agent]
    home = _home(agent, wish, env)
    root = _root(found, wish)
    version = wish.version or installed_version(agent, env)
    target = Target(home, root, datetime.now(UTC), version, wish.view, wish.is_clean)
    restored = agent.restore(found, target)
    if isinstance(restored, RestoreRefused):
        raise RetoldError(restored.why)
    if restored.native_id.startswith("-"):
        raise RetoldError(f"{key}: the agent would take its id for an option: {restored.native_id}")
    return RestorePlan(agent, home, root, restored)


def write(plan: RestorePlan) -> None:
    """Write what was planned, when nothing else is being written there."""
    remove_drafts(plan.additions, plan.home)
    if plan.additions:
        _wait_for_quiet(plan.additions[-1].path.parent)
        add(plan.additions, plan.home)


def _home(agent: Agent, wish: Wish, env: Mapping[str, str]) -> AgentHome:
    if wish.home is None:
        home = next(agent.homes(env))
    else:
        given = os.path.abspath(wish.home)
        home = agent.home_in(Path(given)) or next(agent.homes({"HOME": given, "USERPROFILE": given}))
    for place in (Path(wish.home) if wish.home else home.path, home.path, home.sessions):
        if place.exists() and not place.is_dir():
            raise RetoldError(f"{place} is no folder; nothing was written")
    return home


def _root(found: Lost, wish: Wish) -> str | None:
    root = os.path.realpath(wish.project) if wish.project else found.session.project.root
    if root is not None and not os.path.isdir(root):
        raise RetoldError(
            f"the folder of its project is gone ({root}): make it again, or name another with --project; nothing was written"
        )
    return root


def _wait_for_quiet(folder: Path) -> None:
    """Wait until nobody has written to a folder for a moment; a running agent may be in the middle of something."""
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


def own_homes(env: Mapping[str, str]) -> Iterator[tuple[Agent, AgentHome]]:
    """Yield the homes in which the agents of this machine work, where they are there."""
    for agent in AGENTS.values():
        yield from ((agent, home) for home in agent.homes(env) if os.path.isdir(home.path))


def remove_ghosts(record: Store, homes: Iterable[tuple[Agent, AgentHome]]) -> list[Ghost]:
    """Remove the ghosts that the archive holds byte for byte, beside files that are there; return them."""
    return [
        ghost
        for agent, home in homes
        for ghost in list(agent.ghosts(home))
        if _is_removed(record, agent, ghost)
    ]


def _is_removed(record: Store, agent: Agent, ghost: Ghost) -> bool:
    path = str(ghost.source.path)
    kept = latest_at(record, agent.NAME, path)
    try:
        seen = os.lstat(path)
        if kept is None or (seen.st_size, seen.st_mtime_ns) != kept[1:]:
            return False
        with open(path, "rb") as file:
            if file.read() != record.originals.data(kept[0]):
                return False
        now = os.lstat(path)
        is_same = (now.st_ino, now.st_size, now.st_mtime_ns) == (seen.st_ino, seen.st_size, seen.st_mtime_ns)
        if not is_same or not any(real.is_file() for real in ghost.real):
            return False
        os.unlink(path)
    except OSError:
        return False  # gone, or not ours to remove: the next call finds it again
    return True


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

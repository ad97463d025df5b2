"""Archiving that nobody has to think of: hooks in the agents' settings and a timer, installed and removed."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from retold.agents.protocol import HookPlan
from retold.agents.registry import AGENTS
from retold.archive.database import RetoldError
from retold.archive.store import as_text
from retold.config import retold_home
from retold.maintenance.file_changes import NAME as NOTES
from retold.maintenance.file_changes import (
    ChangeNotes,
    FileChangePlan,
    Note,
    back_up,
    carry_out,
    check,
    content,
    digest,
    is_made_by_us,
    read_notes,
    refusal,
    remove_folders,
    text_of,
    write_notes,
)
from retold.maintenance.invocation import NOW, hook_call, words
from retold.maintenance.json_edit import (
    HOOK_WORDS,
    Broken,
    calls,
    is_bare_object,
    is_called,
    with_hook,
    without_hook,
)
from retold.maintenance.restore import own_homes
from retold.maintenance.timers import TIMERS, usable_timer
from retold.maintenance.timers.machine import Machine, Timer
from retold.synchronization.update import is_taken

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


BACKUPS = "backups"
CONNECTED = ("connected", "stale")
CALLING = ("yes", "connected")
"""States in which an agent calls this retold."""


class Hook(msgspec.Struct, frozen=True):
    """Whether an agent calls retold."""

    agent: str
    home: str | None
    """Where it lives; None for an agent that does not live here."""
    state: str
    """`yes`, `no`, `old` for another call than today's, `connected` and `stale` for the same by what `connect` has
    put there, `none` where the agent has no hooks, or what is wrong."""


class HookWork(msgspec.Struct, frozen=True):
    """What is to be done."""

    settings: tuple[FileChangePlan, ...]
    notes: ChangeNotes
    """What to remember afterwards."""
    timers: tuple[tuple[Timer, tuple[FileChangePlan, ...]], ...]

    @property
    def is_any(self) -> bool:
        """Whether there is something to do."""
        return bool(self.settings or self.timers)


class Done(msgspec.Struct, frozen=True):
    """What was done, and what was not."""

    backups: tuple[tuple[str, str], ...]
    timers: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    """Timers that were not to be had, and why."""


def hooks(machine: Machine) -> Iterator[Hook]:
    """Yield, for each agent and home, whether it calls retold."""
    homes = list(own_homes(machine.env))
    call = hook_call(machine.env, machine.platform)
    for name in AGENTS:
        own = [(agent, home) for agent, home in homes if name == agent.NAME]
        if not own:
            yield Hook(name, None, "no")
        for agent, home in own:
            yield Hook(name, str(home.path), hook_state(agent.hook_plan(home, call)))


def hook_state(plan: HookPlan | None) -> str:
    """Return whether an agent calls retold, as `Hook.state` has it."""
    if plan is None:
        return "none"
    try:
        own = _state(plan, plan.settings, "yes", "old")
        return own or _state(plan, plan.connected, "connected", "stale") or "no"
    except (Broken, RetoldError) as error:
        return str(error)


def _state(plan: HookPlan, settings: Path | None, called: str, otherwise: str) -> str | None:
    if settings is None:
        return None
    path = os.path.realpath(settings)
    text = text_of(path, content(path))
    if text is None or not calls(text):
        return None
    return called if is_called(text, plan) else otherwise


def timer(machine: Machine) -> tuple[str | None, bool]:
    """Return the name of the timer that the machine has, or that is there already, and whether it is on."""
    found = next((one for one in TIMERS if one.is_there(machine)), None) or usable_timer(machine)
    return (None, False) if found is None else (found.NAME, found.is_on(machine))


def installation(machine: Machine) -> HookWork:
    """Return what there is to do so that everything is kept; raises Stopped if some of it cannot be done."""
    folder = retold_home(machine.env)
    if as_text(folder) != folder:
        raise RetoldError(f"{folder} is a path that no settings and no timer can hold; nothing was changed")
    notes = read_notes(folder)
    told = dict(notes.settings)
    changes = []
    for plan in _plans(machine):
        if hook_state(plan) in CONNECTED:
            continue
        path = os.path.realpath(plan.settings)
        raw = content(path)
        try:
            text = text_of(path, raw)
            if text is not None and is_called(text, plan):
                continue
            before = _original(text, raw, notes.settings.get(path))
            after = with_hook(before, plan).encode()
        except Broken as error:
            raise refusal(path, error) from error
        told[path] = Note(before, digest(after), is_made_by_us(folder, path))
        changes.append(FileChangePlan(path, raw, after))
    found = usable_timer(machine)
    wanted = tuple(found.changes(machine, words(NOW, machine.env))) if found else ()
    is_new = found is not None and (any(one.is_any for one in wanted) or not found.is_on(machine))
    timers = ((found, wanted),) if found is not None and is_new else ()
    return HookWork(tuple(changes), ChangeNotes(told, notes.folders), timers)


def removal(machine: Machine) -> HookWork:
    """Return what there is to do so that nothing is left; raises Stopped if some of it cannot be done."""
    notes = read_notes(retold_home(machine.env))
    paths = dict.fromkeys(
        [os.path.realpath(plan.settings) for plan in _plans(machine)] + list(notes.settings)
    )
    changes = []
    for path in paths:
        raw = content(path)
        if raw is None or HOOK_WORDS.encode() not in raw:
            continue
        note = notes.settings.get(path)
        try:
            text = text_of(path, raw)
            before = _original(text, raw, note)
        except Broken as error:
            raise refusal(path, error) from error
        if before is not None and note is not None and note.was_nothing and is_bare_object(before):
            before = None  # the file was ours, and nobody has put anything else into it
        changes.append(FileChangePlan(path, raw, None if before is None else before.encode()))
    there = [one for one in TIMERS if one.is_there(machine)]
    return HookWork(tuple(changes), notes, tuple((one, tuple(one.changes(machine, None))) for one in there))


def carry_out_installation(work: HookWork, machine: Machine) -> Done:
    """Install; raises Stopped, with everything as it was, if a settings file cannot be changed."""
    folder = retold_home(machine.env)
    backups = _backed_up(work, folder)
    made = [*work.notes.folders, *carry_out(work.settings)]
    timers, refused = [], []
    for one, changes in work.timers:
        try:
            made += one.install(machine, changes)
            timers.append(one.NAME)
        except RetoldError as error:
            refused.append((one.NAME, str(error)))
    write_notes(folder, ChangeNotes(work.notes.settings, tuple(dict.fromkeys(made))))
    return Done(tuple(backups), tuple(timers), tuple(refused))


def carry_out_removal(work: HookWork, machine: Machine) -> Done:
    """Remove; raises Stopped, with everything as it was, if a settings file cannot be changed."""
    folder = retold_home(machine.env)
    backups = _backed_up(work, folder)
    carry_out(work.settings)
    timers, refused = [], []
    for one, changes in work.timers:
        try:
            one.remove(machine, changes)
            timers.append(one.NAME)
        except RetoldError as error:
            refused.append((one.NAME, str(error)))
    remove_folders(work.notes.folders)
    write_notes(folder, ChangeNotes())
    return Done(tuple(backups), tuple(timers), tuple(refused))


def _backed_up(work: HookWork, folder: str) -> list[tuple[str, str]]:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise RetoldError(f"{folder}: {error.strerror}; nothing was changed") from error
    for change in (*work.settings, FileChangePlan(os.path.join(folder, NOTES), None, None)):
        check(change)
    backups = os.path.join(folder, BACKUPS)
    return [(one.path, back_up(one, backups)) for one in work.settings if one.before is not None]


def _plans(machine: Machine) -> Iterator[HookPlan]:
    """Yield what has to stand in which settings, each file once."""
    call = hook_call(machine.env, machine.platform)
    seen: set[str] = set()
    for agent, home in own_homes(machine.env):
        plan = agent.hook_plan(home, call)
        if plan is not None and os.path.realpath(plan.settings) not in seen:
            seen.add(os.path.realpath(plan.settings))
            yield plan


def _original(text: str | None, raw: bytes | None, note: Note | None) -> str | None:
    """Return settings as they were before we came: to the byte, if nobody has touched them since."""
    if note is not None and note.is_of(raw):
        return note.before
    return None if text is None else without_hook(text)


REQUEST_FILE, LOCK, LOG = "keep.asked", "keep.lock", "keep.log"
LONGEST_LOG = 1 << 16
_HEARD, _PATIENCE = 1 << 20, 0.5


def ask(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Have it done by a process that outlives this one, unless one is at work already; return at once."""
    _outlast_terminal()
    folder = retold_home(env)
    _leave_mark(folder)
    with _alone(folder) as is_alone:
        pass
    if is_alone:
        _start(command, env)
    hear()


def run(env: Mapping[str, str]) -> None:
    """Do it, as often as it is asked for meanwhile."""
    folder = retold_home(env)
    _leave_mark(folder)
    while os.path.exists(os.path.join(folder, REQUEST_FILE)):
        with _alone(folder) as is_alone:
            if not is_alone:
                return  # whoever is at work looks for a mark after the end
            if _is_mark_taken(folder):
                _do(folder, env)


def _do(folder: str, env: Mapping[str, str]) -> None:
    from retold.archive.store import Store
    from retold.config import read_config
    from retold.maintenance.restore import own_homes, remove_ghosts
    from retold.synchronization.update import Task, update

    config = read_config(folder)
    task = Task(folder, env, list(config.homes.items()), (), config.excluded)
    update(task, lambda: None, lambda *_: None)
    with Store(folder) as record:
        remove_ghosts(record, own_homes(env))


def _leave_mark(folder: str) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.close(os.open(os.path.join(folder, REQUEST_FILE), os.O_WRONLY | os.O_CREAT, 0o600))


def _is_mark_taken(folder: str) -> bool:
    """Take the mark away before the work: what comes later leaves another."""
    try:
        os.unlink(os.path.join(folder, REQUEST_FILE))
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[bool]:
    """Be the only one at work, if nobody else is; the system takes the lock back, however it ends."""
    descriptor = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield is_taken(descriptor)
    finally:
        os.close(descriptor)


def _outlast_terminal() -> None:
    """Stay when the terminal goes: who closes the window ends the agent and its hooks, but means to keep the session."""
    import signal
    import threading

    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _start(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Start a process that has nothing to do with this one: an agent waits for whoever has its pipes."""
    import subprocess

    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    apart: dict[str, int | bool] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    process = subprocess.Popen(list(command), env=dict(env), **quiet, **apart)  # type: ignore[call-overload]  # noqa: S603 - our own command
    process.returncode = 0  # nobody waits for it


def hear() -> None:
    """Read what the agent says, for no longer than a moment: it may wait until somebody has."""
    import threading

    def read() -> None:
        heard = 0
        with contextlib.suppress(OSError):
            while heard < _HEARD and (told := os.read(0, 1 << 16)):
                heard += len(told)

    listener = threading.Thread(target=read, daemon=True)
    listener.start()
    listener.join(_PATIENCE)


def log(folder: str, error: BaseException) -> None:
    """Write down what has gone wrong, on a line; of a long log, the older half goes."""
    from datetime import UTC, datetime

    path = os.path.join(folder, "logs", LOG)
    told = " ".join(f"{type(error).__name__}: {error}".split())
    with contextlib.suppress(OSError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace") as file:
            lines = file.read(4 * LONGEST_LOG)
            if len(lines) > LONGEST_LOG:
                lines = lines[-LONGEST_LOG // 2 :].partition("\n")[2]
            file.seek(0)
            file.truncate()
            file.write(f"{lines}{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {told[:1000]}\n")

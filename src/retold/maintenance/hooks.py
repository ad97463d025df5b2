"""Hooks in the agents' settings and a timer that sync automatically: install, remove, and serve their calls."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from retold.agents.protocol import HookPlan
from retold.agents.registry import AGENTS
from retold.archive.database import RetoldError
from retold.archive.store import as_text
from retold.config import retold_home
from retold.maintenance.file_changes import (
    NOTES_NAME,
    ChangeNotes,
    FileChangePlan,
    Note,
    apply_changes,
    back_up,
    decode_settings,
    digest,
    is_made_by_us,
    prepare_changes,
    read_content,
    read_notes,
    remove_folders,
    settings_error,
    write_notes,
)
from retold.maintenance.invocation import NOW, build_command, make_hook_call
from retold.maintenance.json_edit import (
    HOOK_WORDS,
    MalformedSettings,
    events_with_hook,
    has_planned_hooks,
    is_bare_object,
    with_hook,
    without_hook,
)
from retold.maintenance.restore import find_own_homes
from retold.maintenance.timers import TIMERS, usable_timer
from retold.maintenance.timers.machine import Machine, Timer
from retold.synchronization.update import try_lock

BACKUPS = "backups"
CONNECTED_STATES = ("connected", "stale")
CALLING_STATES = ("yes", "connected")
"""States in which an agent calls this retold."""


class Hook(NamedTuple):
    """The hook in a home of an agent."""

    agent: str
    home: str | None
    """None if the agent is not installed."""
    state: str
    """`yes`; `no`; `old` if it calls another retold; `connected` and `stale` for the same by a hook of `connect`;
    `none` if the agent has no hooks; or an error."""


class TimerStatus(NamedTuple):
    """The timer that is installed, or that the machine has; without a name if it has none."""

    name: str | None
    is_enabled: bool


class TimerWork(NamedTuple):
    """The changes that install or remove a timer."""

    timer: Timer
    changes: tuple[FileChangePlan, ...]


class HookWork(msgspec.Struct, frozen=True):
    """The changes that install or remove hooks and timers."""

    settings: tuple[FileChangePlan, ...]
    notes: ChangeNotes
    """The notes to write afterwards."""
    timers: tuple[TimerWork, ...]

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to change."""
        return bool(self.settings or self.timers)


class HookResult(NamedTuple):
    """The result of an installation or a removal."""

    backups: dict[str, str]
    """The backup of each changed settings file."""
    timers: list[str]
    refused: dict[str, str]
    """The errors of timers that failed, by name."""


def find_hooks(machine: Machine) -> Iterator[Hook]:
    """Yield the hook of each agent and home."""
    homes = list(find_own_homes(machine.env))
    call = make_hook_call(machine.env, machine.platform)
    for name in AGENTS:
        own = [(agent, home) for agent, home in homes if name == agent.NAME]
        if not own:
            yield Hook(name, None, "no")
        for agent, home in own:
            yield Hook(name, str(home.path), hook_state(agent.plan_hooks(home, call)))


def hook_state(plan: HookPlan | None) -> str:
    """Return the state of a hook, as in `Hook.state`."""
    if plan is None:
        return "none"
    try:
        own = _state(plan, plan.settings, "yes", "old")
        return own or _state(plan, plan.connect_file, "connected", "stale") or "no"
    except (MalformedSettings, RetoldError) as error:
        return str(error)


def _state(plan: HookPlan, settings: Path | None, called: str, otherwise: str) -> str | None:
    if settings is None:
        return None
    path = os.path.realpath(settings)
    text = decode_settings(path, read_content(path))
    if text is None or not events_with_hook(text):
        return None
    return called if has_planned_hooks(text, plan) else otherwise


def timer_status(machine: Machine) -> TimerStatus:
    """Return the timer that is installed, else the one that the machine has."""
    found = next((one for one in TIMERS if one.is_installed(machine)), None) or usable_timer(machine)
    return (
        TimerStatus(None, is_enabled=False)
        if found is None
        else TimerStatus(found.NAME, found.is_enabled(machine))
    )


def plan_installation(machine: Machine) -> HookWork:
    """Return the changes that install all hooks and a timer; raise RetoldError if one is not possible."""
    folder = retold_home(machine.env)
    if as_text(folder) != folder:
        raise RetoldError(f"{folder} is a path that no settings and no timer can hold; nothing was changed")
    notes = read_notes(folder)
    settings = dict(notes.settings)
    changes = []
    for plan in _hook_plans(machine):
        if hook_state(plan) in CONNECTED_STATES:
            continue
        path = os.path.realpath(plan.settings)
        raw = read_content(path)
        try:
            text = decode_settings(path, raw)
            if text is not None and has_planned_hooks(text, plan):
                continue
            before = _original(text, raw, notes.settings.get(path))
            after = with_hook(before, plan).encode()
        except MalformedSettings as error:
            raise settings_error(path, error) from error
        settings[path] = Note(before, digest(after), is_made_by_us(folder, path))
        changes.append(FileChangePlan(path, raw, after))
    found = usable_timer(machine)
    planned = tuple(found.changes(machine, build_command(NOW, machine.env))) if found else ()
    is_new = found is not None and (any(one.is_needed for one in planned) or not found.is_enabled(machine))
    timers = (TimerWork(found, planned),) if found is not None and is_new else ()
    return HookWork(tuple(changes), ChangeNotes(settings, notes.folders), timers)


def plan_removal(machine: Machine) -> HookWork:
    """Return the changes that remove all hooks and timers; raise RetoldError if one is not possible."""
    notes = read_notes(retold_home(machine.env))
    paths = dict.fromkeys(
        [os.path.realpath(plan.settings) for plan in _hook_plans(machine)] + list(notes.settings)
    )
    changes = []
    for path in paths:
        raw = read_content(path)
        if raw is None or HOOK_WORDS.encode() not in raw:
            continue
        note = notes.settings.get(path)
        try:
            text = decode_settings(path, raw)
            before = _original(text, raw, note)
        except MalformedSettings as error:
            raise settings_error(path, error) from error
        if before is not None and note is not None and note.had_no_file and is_bare_object(before):
            before = None  # we created the file, and nothing else was added
        changes.append(FileChangePlan(path, raw, None if before is None else before.encode()))
    timers = (
        TimerWork(one, tuple(one.changes(machine, None))) for one in TIMERS if one.is_installed(machine)
    )
    return HookWork(tuple(changes), notes, tuple(timers))


def install(work: HookWork, machine: Machine) -> HookResult:
    """Install hooks and timers; raise RetoldError and change nothing if a settings file cannot be changed."""
    folder = retold_home(machine.env)
    result = HookResult(_back_up_settings(work, folder), [], {})
    made = [*work.notes.folders, *apply_changes(work.settings)]
    for timer, changes in work.timers:
        try:
            made += timer.install(machine, changes)
            result.timers.append(timer.NAME)
        except RetoldError as error:
            result.refused[timer.NAME] = str(error)
    write_notes(folder, ChangeNotes(work.notes.settings, tuple(dict.fromkeys(made))))
    return result


def remove(work: HookWork, machine: Machine) -> HookResult:
    """Remove hooks and timers; raise RetoldError and change nothing if a settings file cannot be changed."""
    folder = retold_home(machine.env)
    result = HookResult(_back_up_settings(work, folder), [], {})
    apply_changes(work.settings)
    for timer, changes in work.timers:
        try:
            timer.remove(machine, changes)
            result.timers.append(timer.NAME)
        except RetoldError as error:
            result.refused[timer.NAME] = str(error)
    remove_folders(work.notes.folders)
    write_notes(folder, ChangeNotes())
    return result


def _back_up_settings(work: HookWork, folder: str) -> dict[str, str]:
    prepare_changes(work.settings, folder, NOTES_NAME)
    backups = os.path.join(folder, BACKUPS)
    return {one.path: back_up(one, backups) for one in work.settings if one.before is not None}


def _hook_plans(machine: Machine) -> Iterator[HookPlan]:
    """Yield the hooks of all agents, each settings file once."""
    call = make_hook_call(machine.env, machine.platform)
    seen: set[str] = set()
    for agent, home in find_own_homes(machine.env):
        plan = agent.plan_hooks(home, call)
        if plan is not None and os.path.realpath(plan.settings) not in seen:
            seen.add(os.path.realpath(plan.settings))
            yield plan


def _original(text: str | None, raw: bytes | None, note: Note | None) -> str | None:
    """Return settings without our hooks: the noted text if the file is as we wrote it."""
    if note is not None and note.matches(raw):
        return note.before
    return None if text is None else without_hook(text)


REQUEST_FILE, LOCK, LOG = "keep.asked", "keep.lock", "keep.log"
LONGEST_LOG = 1 << 16
_MOST_INPUT, _PATIENCE = 1 << 20, 0.5


def request_sync(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Request a sync, and start a process for it that outlives this one unless one is running; return at once."""
    _ignore_hangup()
    folder = retold_home(env)
    _write_request(folder)
    with _try_lock(folder) as is_alone:
        pass
    if is_alone:
        _start_detached(command, env)
    drain_stdin()


def run_requested_syncs(env: Mapping[str, str]) -> None:
    """Sync until there is no request left, also for those that come during a sync."""
    folder = retold_home(env)
    _write_request(folder)
    while os.path.exists(os.path.join(folder, REQUEST_FILE)):
        with _try_lock(folder) as is_alone:
            if not is_alone:
                return  # the process that holds the lock checks for requests before it ends
            if _take_request(folder):
                _sync(folder, env)


def _sync(folder: str, env: Mapping[str, str]) -> None:
    from retold.archive.store import Store
    from retold.config import read_config
    from retold.maintenance.restore import find_own_homes, remove_ghosts
    from retold.synchronization.update import SyncOptions, update

    config = read_config(folder)
    task = SyncOptions(folder, env, list(config.homes.items()), (), config.excluded)
    update(task, lambda: None, lambda *_: None)
    with Store(folder) as record:
        remove_ghosts(record, find_own_homes(env))


def _write_request(folder: str) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.close(os.open(os.path.join(folder, REQUEST_FILE), os.O_WRONLY | os.O_CREAT, 0o600))


def _take_request(folder: str) -> bool:
    """Remove the request before the work, so that a later one is not lost; return whether there was one."""
    try:
        os.unlink(os.path.join(folder, REQUEST_FILE))
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def _try_lock(folder: str) -> Iterator[bool]:
    """Yield whether this process gets the lock; the system releases it even if the process is killed."""
    descriptor = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield try_lock(descriptor)
    finally:
        os.close(descriptor)


def _ignore_hangup() -> None:
    """Ignore SIGHUP: a closed terminal ends the agent and its hooks, and the session should still be archived."""
    import signal
    import threading

    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _start_detached(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Start a process that shares no pipe with this one: an agent waits until all of its pipes are closed."""
    import subprocess

    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    apart: dict[str, int | bool] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    process = subprocess.Popen(list(command), env=dict(env), **quiet, **apart)  # type: ignore[call-overload]  # noqa: S603 - our own command
    process.returncode = 0  # nobody waits for it


def drain_stdin() -> None:
    """Read what the agent writes to stdin, for half a second at most: it may wait until it is read."""
    import threading

    def read() -> None:
        size = 0
        with contextlib.suppress(OSError):
            while size < _MOST_INPUT and (data := os.read(0, 1 << 16)):
                size += len(data)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(_PATIENCE)


def log_error(folder: str, error: BaseException) -> None:
    """Append an error to the log as one line; drop the older half of a long log."""
    from datetime import UTC, datetime

    path = os.path.join(folder, "logs", LOG)
    text = " ".join(f"{type(error).__name__}: {error}".split())
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
            file.write(f"{lines}{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text[:1000]}\n")

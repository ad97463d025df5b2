"""Archiving that nobody has to think of: hooks in the agents' settings and a timer, installed and removed."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from retold.agents.protocol import HookPlan
from retold.agents.registry import AGENTS
from retold.archive.database import RetoldError
from retold.archive.store import as_text
from retold.care.calling import NOW, hook_call, words
from retold.care.changes import (
    FileChangePlan,
    back_up,
    carry_out,
    check,
    content,
    refusal,
    remove_folders,
    text_of,
)
from retold.care.ghosts import own_homes
from retold.care.jsonc import Broken
from retold.care.notes import NAME as NOTES
from retold.care.notes import ChangeNotes, Note, digest, is_made_by_us, read_notes, write_notes
from retold.care.settings import HOOK_WORDS, calls, is_called, with_hook, without_hook
from retold.care.splice import is_bare_object
from retold.care.timers import TIMERS, usable_timer
from retold.care.timers.machine import Machine, Timer
from retold.config import retold_home

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

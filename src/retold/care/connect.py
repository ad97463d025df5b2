"""Agents that ask retold: what is written into their homes for that, and taken out again."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from retold.agents.protocol import AgentConnection, AgentHome, ConnectPlan, OwnFile, ToolServer
from retold.agents.registry import AGENTS
from retold.archive.database import RetoldError
from retold.care.calling import hook_call
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
from retold.care.entries import Entry, has_entry, is_empty, is_named, with_entry, without_entry
from retold.care.ghosts import own_homes
from retold.care.jsonc import Broken
from retold.care.keep import BACKUPS, hook_state
from retold.care.notes import CONNECT, ChangeNotes, Note, digest, is_made_by_us, read_notes, write_notes
from retold.care.settings import HOOK_WORDS, hooks_of
from retold.care.timers.machine import Machine
from retold.config import retold_home
from retold.export.guide import guide

MARKS = (b"retold connect", HOOK_WORDS.encode())
"""What every file of ours has in it, whichever retold wrote it."""
_NO_SERVER = ToolServer("", (), {}, "")


class ConnectWork(msgspec.Struct, frozen=True):
    """What is to be done."""

    agent: str
    changes: tuple[FileChangePlan, ...]
    notes: ChangeNotes
    """What to remember afterwards."""
    folders: tuple[str, ...] = ()
    """Folders to be removed, if nothing is left in them."""

    @property
    def has_hook(self) -> bool:
        """Whether something that calls retold at the end of sessions is removed."""
        return any(one.after is None and HOOK_WORDS.encode() in (one.before or b"") for one in self.changes)


def homes_of(name: str, machine: Machine) -> list[AgentHome]:
    """Return where an agent lives on this machine."""
    homes = [home for agent, home in own_homes(machine.env) if name == agent.NAME]
    return list({os.path.realpath(home.path): home for home in reversed(homes)}.values())[::-1]


def plans(name: str, machine: Machine, server: ToolServer | None) -> Iterator[ConnectPlan]:
    """Yield what has to stand in each home of an agent so that it asks a server; without one, all that ever may."""
    for home in homes_of(name, machine):
        hook = AGENTS[name].hook_plan(home, hook_call(machine.env, machine.platform))
        # Settings that call retold already are enough: twice is once too often.
        is_kept = server is not None and hook_state(hook) in ("yes", "old")
        hooks = None if hook is None or is_kept else hooks_of(hook)
        yield AGENTS[name].connect_plan(home, AgentConnection(server or _NO_SERVER, guide(), hooks))


def connection(name: str, machine: Machine, server: ToolServer) -> ConnectWork:
    """Return what there is to do so that an agent asks retold; raises Stopped if some of it cannot be done."""
    folder = retold_home(machine.env)
    notes = read_notes(folder, notes_name(name))
    told, changes = dict(notes.settings), list[FileChangePlan]()
    wanted = list(plans(name, machine, server))
    planned = {_path(file) for plan in wanted for file in plan.files}
    for path in [path for path in told if path not in planned and _is_within(path, wanted)]:
        if told.pop(path).is_of(raw := content(path)):
            changes.append(FileChangePlan(path, raw, None))  # there was a use for it once
    for plan in wanted:
        changes += [_written(file, told) for file in plan.files]
        changes += [_entered(entry, told, folder) for entry in plan.entries]
    return ConnectWork(name, tuple(one for one in changes if one.is_any), ChangeNotes(told, notes.folders))


def _written(file: OwnFile, told: dict[str, Note]) -> FileChangePlan:
    """Return what becomes of a file of ours; what has its name and is not ours is refused."""
    path, after = _path(file), _encoded(file.text, file.path)
    raw = content(path)
    if raw is not None and raw != after and not _is_ours(raw, told.get(path)):
        raise RetoldError(f"{path} is there already, and is not retold's; nothing was changed")
    told[path] = Note(None, digest(after))
    return FileChangePlan(path, raw, after)


def _entered(entry: Entry, told: dict[str, Note], folder: str) -> FileChangePlan:
    """Return what becomes of settings of others."""
    path = os.path.realpath(entry.settings)
    raw = content(path)
    try:
        text = text_of(path, raw)
        if text is not None and has_entry(text, entry):
            return FileChangePlan(path, raw, raw)
        before = _original(text, raw, entry, told.get(path))
        after = _encoded(with_entry(before, entry), entry.settings)
    except Broken as error:
        raise refusal(path, error) from error
    told[path] = Note(before, digest(after), is_made_by_us(folder, path))
    return FileChangePlan(path, raw, after)


def disconnection(name: str, machine: Machine) -> ConnectWork:
    """Return what there is to do so that nothing is left; raises Stopped if some of it cannot be done."""
    notes = read_notes(retold_home(machine.env), notes_name(name))
    leaving = list(plans(name, machine, None))
    planned = [_path(file) for plan in leaving for file in plan.files]
    ours = dict.fromkeys([*planned, *(path for path in notes.settings if _is_within(path, leaving))])
    changes = [_removed(path, notes) for path in ours]
    changes += [_left(entry, notes) for plan in leaving for entry in plan.entries]
    done = {change.path for change in changes}
    elsewhere = {path: note for path, note in notes.settings.items() if path not in done}
    folders = {folder for path in ours for plan in leaving for folder in _within(path, plan)}
    return ConnectWork(
        name,
        tuple(one for one in changes if one.is_any),
        ChangeNotes(elsewhere, notes.folders if elsewhere else ()),
        (*notes.folders, *folders),
    )


def _removed(path: str, notes: ChangeNotes) -> FileChangePlan:
    raw = content(path)
    is_ours = raw is not None and _is_ours(raw, notes.settings.get(path))
    return FileChangePlan(path, raw, None if is_ours else raw)


def _left(entry: Entry, notes: ChangeNotes) -> FileChangePlan:
    """Return what is left of settings of others."""
    path = os.path.realpath(entry.settings)
    raw, note = content(path), notes.settings.get(path)
    if raw is None:
        return FileChangePlan(path, None, None)
    try:
        text = text_of(path, raw)
        left = _original(text, raw, entry, note)
    except Broken as error:
        if not is_named(raw, entry):
            return FileChangePlan(path, raw, raw)  # broken, but not with us in it
        raise refusal(path, error) from error
    if left is not None and note is not None and note.was_nothing and is_empty(left, entry):
        left = None  # the file was ours, and nobody has put anything else into it
    return FileChangePlan(path, raw, None if left is None else left.encode())


def _original(text: str | None, raw: bytes | None, entry: Entry, note: Note | None) -> str | None:
    """Return settings as they were before we came: to the byte, if nobody has touched them since."""
    if note is not None and note.is_of(raw):
        return note.before
    return None if text is None else without_entry(text, entry)


def carry_out_work(work: ConnectWork, machine: Machine) -> list[tuple[str, str]]:
    """Do it; return which files are kept as they were, and where. Raises Stopped, with everything as it was."""
    folder, name = retold_home(machine.env), notes_name(work.agent)
    earlier = read_notes(folder, name)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise RetoldError(f"{folder}: {error.strerror}; nothing was changed") from error
    for change in (*work.changes, FileChangePlan(os.path.join(folder, name), None, None)):
        check(change)
    backups = [
        (one.path, back_up(one, os.path.join(folder, BACKUPS)))
        for one in work.changes
        if one.before is not None and not _is_untouched(one, earlier)
    ]
    made = carry_out(work.changes)
    remove_folders(work.folders)
    notes = ChangeNotes(work.notes.settings, tuple(dict.fromkeys((*work.notes.folders, *made))))
    write_notes(folder, notes if work.notes.settings else ChangeNotes(), name)
    return backups


def _is_untouched(change: FileChangePlan, notes: ChangeNotes) -> bool:
    """Tell whether a file is ours, and as we wrote it."""
    note = notes.settings.get(change.path)
    return note is not None and note.before is None and note.is_of(change.before)


def notes_name(agent: str) -> str:
    """Return the name of the file in which is remembered what was changed for an agent."""
    return f"{CONNECT}{agent}.json"


def _encoded(text: str, path: Path) -> bytes:
    """Return the bytes of a file; raises Stopped for a path in it that is no text."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise RetoldError(f"{path} would hold a path that is no text; nothing was changed") from error


def _path(file: OwnFile) -> str:
    return os.path.realpath(file.path)


def _is_ours(raw: bytes, note: Note | None) -> bool:
    """Tell whether a file is as we wrote it, or has our name in it still."""
    return (note is not None and note.is_of(raw)) or any(mark in raw for mark in MARKS)


def _is_within(path: str, plans: Sequence[ConnectPlan]) -> bool:
    """Tell whether a file lies in a folder that is ours alone."""
    return any(True for plan in plans for _ in _within(path, plan))


def _within(path: str, plan: ConnectPlan) -> Iterator[str]:
    """Yield the folders that a file lies in, as far as they are ours alone."""
    folder, outermost = os.path.dirname(path), os.path.realpath(plan.folder)
    while folder == outermost or folder.startswith(outermost + os.sep):
        yield folder
        folder = os.path.dirname(folder)

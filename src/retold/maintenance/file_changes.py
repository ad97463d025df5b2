"""Plans to write, change or remove files: shown first, then applied all together or not at all."""

import contextlib
import difflib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from retold.archive.database import RetoldError
from retold.export.files import create_draft
from retold.maintenance.json_edit import MalformedSettings

_UNCHANGED = "; nothing was changed"
LARGEST = 64 << 20
"""Bytes; a larger file is no settings file."""


class FileChangePlan(msgspec.Struct, frozen=True):
    """The content of a file before and after a change; None is no file."""

    path: str
    before: bytes | None
    after: bytes | None

    @property
    def is_needed(self) -> bool:
        """Whether the content differs."""
        return self.before != self.after


def read_content(path: str) -> bytes | None:
    """Return the content of a file, or None if there is none; raise RetoldError if it cannot be a settings file."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its other end
            raise RetoldError(f"{path} is no file{_UNCHANGED}")
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RetoldError(f"{path} cannot be read ({error.strerror}){_UNCHANGED}") from error
    if len(content) > LARGEST:
        raise RetoldError(f"{path} is too large for a settings file{_UNCHANGED}")
    return content


def decode_settings(path: str, raw: bytes | None) -> str | None:
    """Return the text of settings; raise RetoldError if it is not UTF-8."""
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError as error:
        raise RetoldError(f"{path} is no UTF-8{_UNCHANGED}") from error


def settings_error(path: str, error: MalformedSettings) -> RetoldError:
    """Return the error for settings that cannot be changed."""
    return RetoldError(f"{path} cannot be changed: {error}; mend it and try again, nothing was changed")


def _check_change(change: FileChangePlan) -> None:
    """Raise RetoldError if the file system would refuse a change."""
    folder = os.path.dirname(change.path)
    above = next((one for one in _self_and_parents(folder) if os.path.lexists(one)), folder)
    try:
        is_read_only = change.before is not None and not os.stat(change.path).st_mode & stat.S_IWUSR
    except OSError as error:
        raise RetoldError(f"{change.path}: {error.strerror}{_UNCHANGED}") from error
    if is_read_only:
        raise RetoldError(f"{change.path} is read-only{_UNCHANGED}")
    if not os.path.isdir(above) or not os.access(above, os.W_OK | os.X_OK):
        raise RetoldError(f"{above}: no permission to write there{_UNCHANGED}")


def prepare_changes(changes: Sequence[FileChangePlan], folder: str, notes_name: str) -> None:
    """Create the folder of notes and backups; raise RetoldError if a change, or the notes, would be refused."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise RetoldError(f"{folder}: {error.strerror}{_UNCHANGED}") from error
    for change in (*changes, FileChangePlan(os.path.join(folder, notes_name), None, None)):
        _check_change(change)


def _self_and_parents(folder: str) -> Iterator[str]:
    while True:
        yield folder
        if folder == (folder := os.path.dirname(folder)):
            return


def diff_lines(change: FileChangePlan) -> Iterator[str]:
    """Yield the lines of a unified diff of a change."""
    before, after = (
        (data or b"").decode(errors="replace").splitlines() for data in (change.before, change.after)
    )
    old = change.path if change.before is not None else "/dev/null"
    new = change.path if change.after is not None else "/dev/null"
    yield from difflib.unified_diff(before, after, old, new, lineterm="")


def apply_changes(changes: Sequence[FileChangePlan]) -> list[str]:
    """Make all changes, or raise RetoldError and make none; return the folders that were created."""
    for change in changes:
        _check_change(change)
    done: list[FileChangePlan] = []
    folders: list[str] = []
    try:
        for change in changes:
            folders += _write(change)
            done.append(change)
    except (OSError, RetoldError) as error:
        for change in reversed(done):
            with contextlib.suppress(OSError, RetoldError):
                _write(FileChangePlan(change.path, change.after, change.before))
        remove_folders(folders)
        text = str(error) if isinstance(error, RetoldError) else f"{error.filename or ''}: {error.strerror}"
        raise RetoldError(f"{text.removesuffix(_UNCHANGED)}{_UNCHANGED}") from error
    return folders


def _write(change: FileChangePlan) -> list[str]:
    """Replace the file if it is still as planned; return the folders that were created."""
    if read_content(change.path) != change.before:
        raise RetoldError(f"{change.path} has been changed by something else meanwhile")
    if change.after is None:
        os.unlink(change.path)
        return []
    folder = os.path.dirname(change.path)
    made = [one for one in _self_and_parents(folder) if not os.path.lexists(one)]
    os.makedirs(folder, mode=0o700, exist_ok=True)
    handle, draft = create_draft(os.path.join(folder, f".retold-{os.path.basename(change.path)}"))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
        if change.before is not None:
            _copy_owner(draft, os.stat(change.path))
        os.replace(draft, change.path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    return made


def _copy_owner(draft: str, before: os.stat_result) -> None:
    """Give a file the owner and the permissions of the file that it replaces."""
    os.chmod(draft, stat.S_IMODE(before.st_mode))
    if hasattr(os, "chown") and (before.st_uid, before.st_gid) != (os.getuid(), os.getgid()):
        with contextlib.suppress(OSError):
            os.chown(draft, before.st_uid, before.st_gid)
            os.chmod(draft, stat.S_IMODE(before.st_mode))  # chown may clear bits


def remove_folders(folders: Sequence[str]) -> None:
    """Remove the empty ones of the given folders, the innermost first."""
    for folder in sorted(folders, key=len, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def back_up(change: FileChangePlan, folder: str) -> str:
    """Write the content of a file before its change into `folder`, readable by its owner alone; return the path."""
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.path.basename(change.path)}-"
    handle, path = tempfile.mkstemp(dir=folder, prefix=name, suffix=".bak")
    with os.fdopen(handle, "wb") as file:
        file.write(change.before or b"")
    return path


NOTES_NAME = "keep.json"
CONNECT_PREFIX = "connect-"
"""The start of the file names of `connect`'s notes; the agent's name follows."""


class Note(msgspec.Struct, frozen=True):
    """The text of a settings file before our change, and the digest after it."""

    before: str | None
    after: str
    is_new: bool = False
    """Whether `keep` or `connect` created the file, whichever was first."""

    @property
    def had_no_file(self) -> bool:
        """Whether there was no file before our change."""
        return self.before is None or self.is_new

    def matches(self, data: bytes | None) -> bool:
        """Return whether the file is as we wrote it."""
        return data is not None and digest(data) == self.after


class ChangeNotes(msgspec.Struct, frozen=True):
    """Everything that is needed to undo changes."""

    settings: dict[str, Note] = {}
    folders: tuple[str, ...] = ()
    """The folders that were created."""


def digest(data: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(data).hexdigest()


def read_notes(folder: str, name: str = NOTES_NAME) -> ChangeNotes:
    """Return the notes in a folder; empty ones if they cannot be read."""
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return msgspec.json.decode(file.read(), type=ChangeNotes)
    except (OSError, msgspec.DecodeError):
        return ChangeNotes()


def is_made_by_us(folder: str, path: str) -> bool:
    """Return whether `keep` or `connect` created a file."""
    names = [name for name in _list_folder(folder) if name == NOTES_NAME or name.startswith(CONNECT_PREFIX)]
    found = [read_notes(folder, name).settings.get(path) for name in names]
    return any(note is not None and note.had_no_file for note in found)


def _list_folder(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def write_notes(folder: str, notes: ChangeNotes, name: str = NOTES_NAME) -> None:
    """Write notes, readable by their owner alone; remove the file if they are empty."""
    path = os.path.join(folder, name)
    if notes == ChangeNotes():
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    os.makedirs(folder, mode=0o700, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=folder, prefix=name)
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.json.encode(notes))
    os.replace(draft, path)

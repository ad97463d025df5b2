"""Files to be written, changed or removed: shown first, then done in one go, or not at all."""

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
from retold.export.files import new_draft
from retold.maintenance.json_edit import Broken

_UNCHANGED = "; nothing was changed"
LARGEST = 64 << 20
"""Bytes; what is larger is no settings file."""


class FileChangePlan(msgspec.Struct, frozen=True):
    """What a file is and what it is to be; None where there is none."""

    path: str
    before: bytes | None
    after: bytes | None

    @property
    def is_any(self) -> bool:
        """Whether there is something to do."""
        return self.before != self.after


def content(path: str) -> bytes | None:
    """Return what a file holds, if it is there; raises Stopped for what is no file of a person's own."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # to open a pipe would be to wait for its other end
            raise RetoldError(f"{path} is no file{_UNCHANGED}")
        with open(path, "rb") as file:
            held = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RetoldError(f"{path} cannot be read ({error.strerror}){_UNCHANGED}") from error
    if len(held) > LARGEST:
        raise RetoldError(f"{path} is too large for a settings file{_UNCHANGED}")
    return held


def text_of(path: str, raw: bytes | None) -> str | None:
    """Return what settings say; raises Stopped."""
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError as error:
        raise RetoldError(f"{path} is no UTF-8{_UNCHANGED}") from error


def refusal(path: str, error: Broken) -> RetoldError:
    """Return why settings are left as they are."""
    return RetoldError(f"{path} cannot be changed: {error}; mend it and try again, nothing was changed")


def check(change: FileChangePlan) -> None:
    """Raise Stopped where a change would be refused."""
    folder = os.path.dirname(change.path)
    above = next((place for place in _above(folder) if os.path.lexists(place)), folder)
    try:
        is_read_only = change.before is not None and not os.stat(change.path).st_mode & stat.S_IWUSR
    except OSError as error:
        raise RetoldError(f"{change.path}: {error.strerror}{_UNCHANGED}") from error
    if is_read_only:
        raise RetoldError(f"{change.path} is read-only{_UNCHANGED}")
    if not os.path.isdir(above) or not os.access(above, os.W_OK | os.X_OK):
        raise RetoldError(f"{above}: no permission to write there{_UNCHANGED}")


def _above(folder: str) -> Iterator[str]:
    while True:
        yield folder
        if folder == (folder := os.path.dirname(folder)):
            return


def difference(change: FileChangePlan) -> Iterator[str]:
    """Yield the lines of a unified diff."""
    before, after = (
        (data or b"").decode(errors="replace").splitlines() for data in (change.before, change.after)
    )
    old = change.path if change.before is not None else "/dev/null"
    new = change.path if change.after is not None else "/dev/null"
    yield from difflib.unified_diff(before, after, old, new, lineterm="")


def carry_out(changes: Sequence[FileChangePlan]) -> list[str]:
    """Make all changes, or none; return the folders that had to be made. Raises Stopped."""
    for change in changes:
        check(change)
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
        told = str(error) if isinstance(error, RetoldError) else f"{error.filename or ''}: {error.strerror}"
        raise RetoldError(f"{told.removesuffix(_UNCHANGED)}{_UNCHANGED}") from error
    return folders


def _write(change: FileChangePlan) -> list[str]:
    """Put the new file in the place of the old; return the folders that had to be made."""
    if content(change.path) != change.before:
        raise RetoldError(f"{change.path} has been changed by something else meanwhile")
    if change.after is None:
        os.unlink(change.path)
        return []
    folder = os.path.dirname(change.path)
    made = [place for place in _above(folder) if not os.path.lexists(place)]
    os.makedirs(folder, mode=0o700, exist_ok=True)
    handle, draft = new_draft(os.path.join(folder, f".retold-{os.path.basename(change.path)}"))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
        if change.before is not None:
            _as_before(draft, os.stat(change.path))
        os.replace(draft, change.path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    return made


def _as_before(draft: str, before: os.stat_result) -> None:
    """Give a file the owner and the permissions of the one whose place it takes."""
    os.chmod(draft, stat.S_IMODE(before.st_mode))
    if hasattr(os, "chown") and (before.st_uid, before.st_gid) != (os.getuid(), os.getgid()):
        with contextlib.suppress(OSError):
            os.chown(draft, before.st_uid, before.st_gid)
            os.chmod(draft, stat.S_IMODE(before.st_mode))  # a change of owner may take some away


def remove_folders(folders: Sequence[str]) -> None:
    """Remove folders that were made, the innermost first, if nothing is in them."""
    for folder in sorted(folders, key=len, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def back_up(change: FileChangePlan, folder: str) -> str:
    """Keep a file as it was, for its owner only; return where."""
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.path.basename(change.path)}-"
    handle, path = tempfile.mkstemp(dir=folder, prefix=name, suffix=".bak")
    with os.fdopen(handle, "wb") as file:
        file.write(change.before or b"")
    return path


NAME = "keep.json"
CONNECT = "connect-"
"""How the names of what `connect` remembers begin."""


class Note(msgspec.Struct, frozen=True):
    """What a file was, and how to know again what was made of it."""

    before: str | None
    after: str
    is_new: bool = False
    """Whether the file was not there before any of us came, whoever of us came first."""

    @property
    def was_nothing(self) -> bool:
        """Whether there is no file to go back to."""
        return self.before is None or self.is_new

    def is_of(self, data: bytes | None) -> bool:
        """Tell whether nobody has touched the file since."""
        return data is not None and digest(data) == self.after


class ChangeNotes(msgspec.Struct, frozen=True):
    """All that is remembered."""

    settings: dict[str, Note] = {}
    folders: tuple[str, ...] = ()
    """Folders that had to be made."""


def digest(data: bytes) -> str:
    """Return what a file is known by."""
    return hashlib.sha256(data).hexdigest()


def read_notes(folder: str, name: str = NAME) -> ChangeNotes:
    """Return what is remembered; nothing, where that cannot be read."""
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return msgspec.json.decode(file.read(), type=ChangeNotes)
    except (OSError, msgspec.DecodeError):
        return ChangeNotes()


def is_made_by_us(folder: str, path: str) -> bool:
    """Tell whether a file that is there was made by one of us."""
    names = [name for name in _listed(folder) if name == NAME or name.startswith(CONNECT)]
    found = [read_notes(folder, name).settings.get(path) for name in names]
    return any(note is not None and note.was_nothing for note in found)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def write_notes(folder: str, notes: ChangeNotes, name: str = NAME) -> None:
    """Remember this, for the owner only; where there is nothing to remember, nothing is left."""
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

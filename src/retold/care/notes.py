"""What `keep` and `connect` remember of what they changed, so that it can be undone to the byte, in retold's own folder."""

import contextlib
import hashlib
import os
import tempfile

import msgspec

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

"""What `keep` remembers of what it changed, so that it can be undone to the byte: `keep.json` in retold's own folder."""

import contextlib
import hashlib
import os
import tempfile

import msgspec

NAME = "keep.json"


class Note(msgspec.Struct, frozen=True):
    """What a file was, and how to know again what was made of it."""

    before: str | None
    after: str

    def is_of(self, data: bytes | None) -> bool:
        """Tell whether nobody has touched the file since."""
        return data is not None and digest(data) == self.after


class Notes(msgspec.Struct, frozen=True):
    """All that is remembered."""

    settings: dict[str, Note] = {}
    folders: tuple[str, ...] = ()
    """Folders that had to be made."""


def digest(data: bytes) -> str:
    """Return what a file is known by."""
    return hashlib.sha256(data).hexdigest()


def read_notes(folder: str) -> Notes:
    """Return what is remembered; nothing, where that cannot be read."""
    try:
        with open(os.path.join(folder, NAME), "rb") as file:
            return msgspec.json.decode(file.read(), type=Notes)
    except (OSError, msgspec.DecodeError):
        return Notes()


def write_notes(folder: str, notes: Notes) -> None:
    """Remember this, for the owner only; where there is nothing to remember, nothing is left."""
    path = os.path.join(folder, NAME)
    if notes == Notes():
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    os.makedirs(folder, mode=0o700, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=folder, prefix=NAME)
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.json.encode(notes))
    os.replace(draft, path)

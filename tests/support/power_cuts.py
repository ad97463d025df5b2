"""Power cuts: what SQLite writes and syncs is recorded, and the disk is rebuilt as a cut may leave it."""

import pickle
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

RECORDER = """
import atexit, os, pickle, apsw

def path_of(name):
    return name if isinstance(name, str) else name.filename()

class RecordedFile(apsw.VFSFile):
    def __init__(self, name, flags):
        self.path = None if name is None else path_of(name)
        super().__init__("unix", name, flags)
    def xWrite(self, data, offset):
        super().xWrite(data, offset)
        EVENTS.append(("write", self.path, offset, bytes(data)))
    def xTruncate(self, size):
        super().xTruncate(size)
        EVENTS.append(("truncate", self.path, size, b""))
    def xSync(self, flags):
        super().xSync(flags)
        EVENTS.append(("sync", self.path, 0, b""))

class Recorder(apsw.VFS):
    def __init__(self):
        super().__init__("recorder", "unix", makedefault=True)
    def xOpen(self, name, flags):
        if name is not None:
            EVENTS.append(("create", path_of(name), 0, b""))
        return RecordedFile(name, flags)
    def xDelete(self, path, sync):
        super().xDelete(path, sync)
        EVENTS.append(("delete", path, 0, b""))

EVENTS = []
recorder = Recorder()

def save():
    with open(os.environ["EVENTS"], "wb") as file:
        pickle.dump([event for event in EVENTS if event[1] is not None], file)

atexit.register(save)
"""
"""Code for a process of one's own: it records everything that SQLite does to files, and saves it in `$EVENTS`."""


class FileEvent(NamedTuple):
    """Something that SQLite did to a file."""

    kind: str
    path: str
    place: int
    data: bytes


def read_events(path: Path) -> list[FileEvent]:
    return [FileEvent(*event) for event in pickle.loads(path.read_bytes())]  # noqa: S301 - of a process that the test started


def cut_power(
    before: Path | None, events: Sequence[FileEvent], folder: Path, into: Path, chance: Random
) -> None:
    """Rebuild a folder as a power cut behind some events may leave it.

    What was synced is there. Of what was written later, a random part is. Files are made and removed at once.
    """
    if before is not None:
        shutil.copytree(before, into)
    files: dict[str, bytearray] = {}
    last_sync = {event.path: number for number, event in enumerate(events) if event.kind == "sync"}
    for number, event in enumerate(events):
        path = into / Path(event.path).relative_to(folder)
        held = files.get(event.path)
        if held is None:
            held = files[event.path] = bytearray(path.read_bytes() if path.exists() else b"")
        is_durable = number < last_sync.get(event.path, 0) or chance.random() < 0.5
        if event.kind == "delete":
            del files[event.path]
            path.unlink(missing_ok=True)
        elif event.kind == "truncate" and is_durable:
            del held[event.place :]
        elif event.kind == "write" and is_durable:
            held.extend(bytes(max(0, event.place - len(held))))
            held[event.place : event.place + len(event.data)] = event.data
    for name, held in files.items():
        path = into / Path(name).relative_to(folder)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_bytes(held)
    for path in into.rglob("*-shm"):
        path.unlink()

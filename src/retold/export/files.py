"""Files that are written: readable by their owner alone, and whole or not there."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from zlib import crc32

from retold.export.text.times import day
from retold.model.serialization import encoded
from retold.model.session import Session
from retold.redaction.redactor import Removal

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable


def to_file(path: str, pieces: Iterable[bytes]) -> int:
    """Write a file in place of one that may be there; return its size.

    A link stays one, and what is no file of a disk, a pipe or a terminal, is written to as it is.
    """
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as there:
            return sum(map(there.write, pieces))
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, mode=0o700, exist_ok=True)
    handle, draft = new_draft(os.path.join(folder, f".retold-{crc32(os.fsencode(path)):08x}"))
    size = 0
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                size += file.write(piece)
        os.replace(draft, path)
    except BaseException:  # Ctrl-C too: nothing half written is left
        os.unlink(draft)
        raise
    return size


def new_draft(path: str) -> tuple[int, str]:
    """Return a new file, readable by its owner alone, with its descriptor; at `path`, unless another process writes there.

    The draft that a killed process left at `path` is replaced.
    """
    for _ in range(2):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if not _is_abandoned(path):
                break
            os.unlink(path)
        else:
            _lock(descriptor)
            return descriptor, path
    return tempfile.mkstemp(dir=os.path.dirname(path), prefix=f"{os.path.basename(path)}-")


def _is_abandoned(path: str) -> bool:
    """Return whether a file is ours, and no process writes it."""
    found = os.lstat(path)
    if os.name != "posix" or not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        return False
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock a file until its descriptor is closed, and return whether that is possible."""
    try:
        import fcntl  # noqa: PLC0415 - Windows has none

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


_LONGEST = 48
_OTHERS = re.compile(r"[\W_]+")


def file_name(session: Session, suffix: str, taken: Collection[str] = ()) -> str:
    """Return a name that no other file of the export has: the day, the title and the start of the id."""
    began = day(session.started_at) if session.started_at else "undated"
    # Letters of every script stay; no dot, separator or control character does.
    title = _OTHERS.sub("-", (session.title or "untitled").lower())[:_LONGEST].strip("-")
    known = _OTHERS.sub("-", session.native_id or session.key).strip("-")[:8]
    stem = "-".join(part for part in (began, title, known) if part)
    number, name = 2, f"{stem}{suffix}"
    while name in taken:
        number, name = number + 1, f"{stem}-{number}{suffix}"
    return name


def free_path(folder: str, name: str) -> str:
    """Return a path in a folder at which nothing lies yet: the name, or one with a number."""
    stem, suffix = os.path.splitext(name)
    number, path = 2, os.path.join(folder, name)
    while os.path.lexists(path):
        number, path = number + 1, os.path.join(folder, f"{stem}-{number}{suffix}")
    return path


_SHOWN = 6


def report_sentence(report: Sequence[Removal]) -> str:
    """Return how many secrets there were, and of which kinds, the most frequent first."""
    if not report:
        return "no secrets were found; look before you pass it on all the same"
    kinds = Counter(kind for kind, _ in {(one.kind, one.placeholder) for one in report})
    told = [f"{count:,} {kind}" for kind, count in sorted(kinds.items(), key=lambda one: (-one[1], one[0]))]
    rest = len(told) - _SHOWN
    shown = ", ".join([*told[:_SHOWN], *([f"{rest} more kinds"] if rest > 0 else [])])
    places = sum(one.count for one in report)
    return f"taken out: {shown}, in {places:,} place{'' if places == 1 else 's'}; look before you pass it on all the same"


def report_lines(report: Sequence[Removal]) -> Iterator[bytes]:
    """Yield each as a JSON object: its kind, what stands there now, how often, and where."""
    for one in report:
        place = one.place
        tree = {
            "kind": one.kind,
            "placeholder": one.placeholder,
            "count": one.count,
            "session": place.session,
            "entry": place.entry,
            "field": place.field,
        }
        yield encoded(tree) + b"\n"

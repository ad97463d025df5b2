"""Writes exported files, atomically and readable by their owner alone, and names them; formats the report of redactions."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from zlib import crc32

from retold.export.text.formatting import format_day, plural
from retold.model.serialization import encode_tree
from retold.model.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from retold.redaction.redactor import Removal


def write_file(path: str, pieces: Iterable[bytes]) -> int:
    """Write a file, replacing an existing one, and return its size.

    A symbolic link stays one. A pipe, terminal or other special file is written in place.
    """
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as special:
            return sum(map(special.write, pieces))
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, mode=0o700, exist_ok=True)
    handle, draft = create_draft(os.path.join(folder, f".retold-{crc32(os.fsencode(path)):08x}"))
    size = 0
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                size += file.write(piece)
        os.replace(draft, path)
    except BaseException:  # Ctrl-C too: no partial file stays
        os.unlink(draft)
        raise
    return size


def create_draft(path: str) -> tuple[int, str]:
    """Create a file that only its owner can read, and return its descriptor and path.

    The path is `path` unless another process writes there. A draft that a killed process left at `path` is replaced.
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
    """Return whether a file belongs to this user and no process writes it."""
    status = os.lstat(path)
    if os.name != "posix" or not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
        return False
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock a file until its descriptor is closed; return whether it could be locked."""
    try:
        import fcntl  # noqa: PLC0415 - Windows has none

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


_LONGEST = 48
_OTHERS = re.compile(r"[\W_]+")


def file_name(session: Session, suffix: str, taken: Collection[str] = ()) -> str:
    """Return the day, the title and the start of the id as a name that is not in `taken`."""
    began = format_day(session.started_at) if session.started_at else "undated"
    # Letters of every script stay; no dot, separator or control character does.
    title = _OTHERS.sub("-", (session.title or "untitled").lower())[:_LONGEST].strip("-")
    native_id = _OTHERS.sub("-", session.native_id or session.key).strip("-")[:8]
    stem = "-".join(part for part in (began, title, native_id) if part)
    number, name = 2, f"{stem}{suffix}"
    while name in taken:
        number, name = number + 1, f"{stem}-{number}{suffix}"
    return name


def free_path(folder: str, name: str) -> str:
    """Return a path in a folder at which no file exists: the name, or the name with a number."""
    stem, suffix = os.path.splitext(name)
    number, path = 2, os.path.join(folder, name)
    while os.path.lexists(path):
        number, path = number + 1, os.path.join(folder, f"{stem}-{number}{suffix}")
    return path


_MOST_KINDS = 6


def format_removals(report: Sequence[Removal]) -> str:
    """Return the number of removed secrets of each kind, the most frequent first."""
    if not report:
        return "no secrets were found; check the output before you share it"
    kinds = Counter(kind for kind, _ in {(one.kind, one.placeholder) for one in report})
    counts = [f"{count:,} {kind}" for kind, count in sorted(kinds.items(), key=lambda one: (-one[1], one[0]))]
    rest = len(counts) - _MOST_KINDS
    shown = ", ".join([*counts[:_MOST_KINDS], *([f"{rest} more kinds"] if rest > 0 else [])])
    places = plural(sum(one.count for one in report), "place")
    return f"taken out: {shown}, in {places}; check the output before you share it"


def removals_json(report: Sequence[Removal]) -> Iterator[bytes]:
    """Yield each removal as a JSON object: its kind, its placeholder, how often it stands, and where."""
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
        yield encode_tree(tree) + b"\n"

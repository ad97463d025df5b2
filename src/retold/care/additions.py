"""Files added to an agent's home: all of them or none, each whole or not at all, and never in place of another."""

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from retold.agents.protocol import Addition, AgentHome
from retold.archive.database import RetoldError

_COPY_STEP = 1 << 20
_DRAFT = re.compile(r"\.retold-([1-9]\d*)-[0-9a-f]{8}\.part\Z")
"""How the name of a file ends while it is written: the process that writes it, and a random number."""


def add(additions: Sequence[Addition], home: AgentHome) -> None:
    """Write files in their order; what was written is taken back if one of them cannot be."""
    made: list[str] = []
    try:
        for addition in additions:
            _check(addition.path, home)
            for folder in _missing_folders(addition.path.parent):
                os.mkdir(folder, 0o700)
                made.append(folder)
            _write(addition)
            made.append(str(addition.path))
    except OSError as error:
        _take_back(made)
        raise RetoldError(
            f"{error.filename or addition.path}: {error.strerror}; nothing was written"
        ) from error
    except BaseException:
        _take_back(made)
        raise


def remove_drafts(additions: Sequence[Addition], home: AgentHome) -> None:
    """Remove the drafts that processes of retold left in a home when they were killed."""
    for top in {home.sessions, *(addition.path.parent for addition in additions)}:
        for folder, _, names in os.walk(top):
            for name in names:
                found = _DRAFT.search(name)
                if found is not None and not _is_running(int(found[1])):
                    with suppress(OSError):  # it cannot be removed, or another process did it
                        os.unlink(os.path.join(folder, name))


def _is_running(process: int) -> bool:
    """Tell whether there is a process of this number; where the system cannot be asked, there may be."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        return True
    return True


def _check(path: Path, home: AgentHome) -> None:
    """Refuse what would lie outside the home: a link in it may lead anywhere."""
    nearest = next(folder for folder in path.parents if folder.exists() or folder.is_symlink())
    bounds = [os.path.realpath(home.path), os.path.realpath(home.sessions)]
    real = os.path.join(os.path.realpath(nearest), os.path.relpath(path, nearest))
    if not any(os.path.commonpath([real, bound]) == bound for bound in bounds if _is_near(real, bound)):
        raise RetoldError(f"{path} would lie outside {home.path}; nothing was written")


def _is_near(path: str, bound: str) -> bool:
    return os.path.splitdrive(path)[0] == os.path.splitdrive(bound)[0]


def _missing_folders(folder: Path) -> list[str]:
    return [str(one) for one in reversed((folder, *folder.parents)) if not one.exists()]


def _write(addition: Addition) -> None:
    draft = (
        f"{addition.path}.retold-{os.getpid()}-{os.urandom(4).hex()}.part"  # agents do not look at such names
    )
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            for piece in _pieces(addition):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        _publish(draft, str(addition.path))
    finally:
        if os.path.lexists(draft):
            os.unlink(draft)


def _publish(draft: str, path: str) -> None:
    """Give a file its name, unless another has it."""
    try:
        os.link(draft, path)
    except (AttributeError, NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (
            errno.EPERM,
            errno.ENOTSUP,
            errno.EACCES,
            errno.EMLINK,
        ):
            raise
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from error
        os.rename(draft, path)  # where there are no links; on Windows this never replaces


def _pieces(addition: Addition) -> Iterator[bytes]:
    if addition.source is None:
        yield addition.data
        return
    file = addition.source.disk.open(str(addition.source.path))
    try:
        while data := file.read(_COPY_STEP):
            yield data
    finally:
        file.close()


def _take_back(made: Sequence[str]) -> None:
    for path in reversed(made):
        try:
            os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
        except OSError:
            continue  # something else lies in it by now

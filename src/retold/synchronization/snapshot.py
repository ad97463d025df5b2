"""Snapshots of files: each stays as it was when it was opened first while it is read, and is packed into originals."""

import time
from collections.abc import Iterable, Sequence
from weakref import finalize

import msgspec

from retold.archive.annotations import EMPTY_SET, KeyedSet, remove_forgotten
from retold.archive.rows import stable_uid
from retold.archive.store import Chunk, Originals, Packer, digest, sample_checksum
from retold.archive.writer import NewContent
from retold.model.problem import problem
from retold.model.spool import Spool
from retold.reading.disk import DISK, Disk, DiskEntry, OpenFile, printable_path
from retold.sessions.archive_disk import FixedFile, MemoryFile
from retold.synchronization.fingerprints import TAIL

LARGEST = 64 << 20
"""Bytes of the largest file that is read into memory; larger ones are kept open."""
ATTEMPTS = 3
_STEP = 1 << 20


class _LargeFile(FixedFile):
    """A large file for one reader. Several readers share a descriptor, and read up to the end that the file had at first."""

    __slots__ = ("_file",)

    def __init__(self, file: OpenFile, size: int) -> None:
        super().__init__(size, file.modified_ns, file.identity)
        self._file = file

    def read_part(self, start: int, size: int) -> bytes:
        self._file.seek(start)
        return self._file.read(size)


class FileChangedError(Exception):
    """A file was rewritten in place while it was read."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.problem = problem("changed-while-read", "rewritten while it was read", printable_path(path))
        self.path = path


class FrozenFile:
    """The content of a file when it was opened first."""

    def __init__(self, path: str, file: OpenFile) -> None:
        self.path, self.read_ns = path, time.time_ns()
        self.size = self.file_size = file.size
        self.modified_ns, self.identity = file.modified_ns, file.identity
        self.data: bytes | None = None
        """The content; None if the file is too large for memory."""
        self._file: OpenFile | None = None

    def keep_open(self, file: OpenFile) -> None:
        """Read a large file through this descriptor only, so that another file in its place changes nothing."""
        self._file = file
        finalize(self, file.close)

    def open(self) -> OpenFile:
        """Open the content."""
        if self.data is not None:
            return MemoryFile(self.data, self.modified_ns)
        assert self._file is not None  # noqa: S101 - a frozen file has one of the two
        return _LargeFile(self._file, self.size)

    def read_part(self, start: int, size: int) -> bytes:
        """Return a part of the content."""
        if self.data is not None:
            return self.data[start : start + size]
        file, pieces = self.open(), []
        file.seek(start)
        while size and (data := file.read(size)):
            pieces.append(data)
            size -= len(data)
        return b"".join(pieces)

    def is_untouched(self) -> bool:
        """Return whether nothing was written to the file since it was opened."""
        return self._file is None or self._file.status() == (self.file_size, self.modified_ns)

    def set_size(self) -> None:
        """Set the size and the digest of the tail once all of the content is known."""
        self.size = self.file_size = self.size if self.data is None else len(self.data)
        self.tail = digest(self.read_part(max(self.size - TAIL, 0), TAIL))

    def remove(self, forgotten: KeyedSet) -> None:
        """Remove the records of forgotten conversations."""
        if forgotten and self.data is not None:
            self.data = remove_forgotten(self.data, forgotten)
            self.size = len(self.data)


class Snapshot:
    """The disk of this machine with frozen files. A file that is gone is read from another disk."""

    def __init__(self, gone: Disk, forgotten: KeyedSet = EMPTY_SET, local: Disk = DISK) -> None:
        """Take the disk for files that are gone, the ids of forgotten conversations, and this machine's disk."""
        self.files: dict[str, FrozenFile] = {}
        """The files of this machine that were opened."""
        self._gone, self._forgotten, self._local = gone, forgotten, local

    def open(self, path: str) -> OpenFile:
        """Open a file as it was when it was opened first."""
        file = self.files.get(path)
        if file is None:
            try:
                file = self.files[path] = _freeze(path, self._local)
                file.remove(self._forgotten)
            except FileNotFoundError:
                return self._gone.open(path)
        return file.open()

    def entries(self, folder: str) -> Sequence[DiskEntry]:
        """Return the entries of a folder, also those that are gone."""
        try:
            present = self._local.entries(folder)
        except FileNotFoundError:
            return self._gone.entries(folder)
        try:
            archived = self._gone.entries(folder)
        except OSError:
            return present
        names = {entry.name for entry in present}
        gone = [entry for entry in archived if entry.name not in names]
        return sorted([*present, *gone], key=lambda entry: entry.name) if gone else present

    def is_folder(self, path: str) -> bool:
        """Return whether a folder is or was there."""
        return self._local.is_folder(path) or self._gone.is_folder(path)

    def is_file(self, path: str) -> bool:
        """Return whether a file is or was there."""
        return self._local.is_file(path) or self._gone.is_file(path)

    def is_link(self, path: str) -> bool:
        """Return whether a link is there."""
        return self._local.is_link(path)


def _freeze(path: str, disk: Disk) -> FrozenFile:
    """Read a file, again if it changes meanwhile; after some attempts, what was read counts if the file only grew."""
    for _ in range(ATTEMPTS):
        file = disk.open(path)
        frozen = FrozenFile(path, file)
        if frozen.size > LARGEST:
            frozen.keep_open(file)
            break
        try:
            frozen.data = _read_all(file)
            is_settled = (
                file.status() == (frozen.size, frozen.modified_ns) and len(frozen.data) == frozen.size
            )
        finally:
            file.close()
        if is_settled:
            break
    else:
        _require_growth(frozen, disk)
    frozen.set_size()
    return frozen


def _require_growth(frozen: FrozenFile, disk: Disk) -> None:
    """Raise FileChangedError if a file does not begin with what was read of it."""
    file = disk.open(frozen.path)
    try:
        has_grown = _read_all(file).startswith(frozen.data or b"")
    finally:
        file.close()
    if not has_grown:
        raise FileChangedError(frozen.path)


def _read_all(file: OpenFile) -> bytes:
    pieces = [file.read(file.size + 1)]
    while pieces[-1] and sum(map(len, pieces)) < LARGEST:
        pieces.append(file.read(file.size + 1))
    return pieces[0] if len(pieces) == 2 and not pieces[1] else b"".join(pieces)  # noqa: PLR2004 - read at once


class StoredOriginal(msgspec.Struct, frozen=True):
    """An original of a file in the archive."""

    id: int
    uid: int
    size: int
    modified_ns: int
    checksum: bytes
    is_latest: int


def begins_with(file: FrozenFile, latest: StoredOriginal | None, originals: Originals) -> bool:
    """Return whether a file begins with the bytes of an original: samples are compared first, then every chunk."""
    if latest is None:
        return True
    if latest.size > file.size or sample_checksum(latest.size, file.read_part) != latest.checksum:
        return False
    offset = 0
    for (_, size), known in zip(originals.pieces(latest.id), originals.digests(latest.id), strict=True):
        if digest(file.read_part(offset, size)) != known:
            return False
        offset += size
    return offset == latest.size


def pack(agent: str, file: FrozenFile, spool: Spool, *, is_version: bool = False) -> NewContent:
    """Return the whole content of a file as a new original.

    If earlier versions of the file are kept, chunks are cut by their content, so that equal parts are stored once.
    """
    packed = _pack(file, 0, 0, 0, spool, is_version=is_version)
    digests = [chunk.digest.hex() for chunk in packed.chunks]
    uid = stable_uid("original", agent, file.path, str(file.size), str(file.modified_ns), *digests)
    return msgspec.structs.replace(packed, uid=uid)


def pack_growth(file: FrozenFile, latest: StoredOriginal, originals: Originals, spool: Spool) -> NewContent:
    """Return the new end of a file; a small last chunk is packed again with it."""
    start, offset = originals.growth_start(latest.id)
    return _pack(file, latest.uid, offset, start, spool)


def _pack(  # noqa: PLR0913 - a part of a file, and where its chunks go
    file: FrozenFile, uid: int, offset: int, start: int, spool: Spool, *, is_version: bool = False
) -> NewContent:
    own_spool = spool if file.data is None else None
    packer = Packer(own_spool)
    if file.data is None:
        for begin in range(offset, file.size, _STEP):
            packer.add(file.read_part(begin, min(_STEP, file.size - begin)))
    elif is_version:
        packer.add_by_content(file.data)
    else:
        packer.add(file.data[offset:] if offset else file.data)
    chunks = packer.finish()
    if not file.is_untouched():
        _require_chunks(file, offset, chunks)
    checksum = sample_checksum(file.size, file.read_part)
    path = None if own_spool is None else own_spool.path
    return NewContent(uid, file.size, file.modified_ns, checksum, chunks, start, path)


def _require_chunks(file: FrozenFile, offset: int, chunks: Iterable[Chunk]) -> None:
    """Raise FileChangedError if chunks were rewritten meanwhile; appended bytes are harmless."""
    for chunk in chunks:
        if digest(file.read_part(offset, chunk.size)) != chunk.digest:
            raise FileChangedError(file.path)
        offset += chunk.size

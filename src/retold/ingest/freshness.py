"""Packs what is new in a file: its end where it grew, all of it where it was rewritten."""

from collections.abc import Iterable

import msgspec

from retold.archive.rows import stable_uid
from retold.archive.store import SMALL, Chunk, Originals, Packer, digest, seal
from retold.archive.writer import NewContent
from retold.ingest.snapshot import FileChangedError, FrozenFile

_STEP = 1 << 20


class StoredOriginal(msgspec.Struct, frozen=True):
    """An original that is kept of a file."""

    id: int
    name: int
    size: int
    modified_ns: int
    seal: bytes
    is_latest: int


def begins_with(still: FrozenFile, latest: StoredOriginal | None, originals: Originals) -> bool:
    """Tell whether a file begins with the bytes of an original: chunk by chunk, after a look at samples."""
    if latest is None:
        return True
    if latest.size > still.size or seal(latest.size, still.part) != latest.seal:
        return False
    offset = 0
    for (_, size), known in zip(originals.pieces(latest.id), originals.digests(latest.id), strict=True):
        if digest(still.part(offset, size)) != known:
            return False
        offset += size
    return offset == latest.size


def pack(agent: str, still: FrozenFile, *, is_version: bool = False) -> NewContent:
    """Return the whole content of a file as a new original.

    Where earlier versions of the file are kept, chunks are cut by their content, so that equal parts are stored once.
    """
    made = _packed(still, 0, 0, 0, is_version=is_version)
    digests = [chunk.digest.hex() for chunk in made.chunks]
    name = stable_uid("original", agent, still.path, str(still.size), str(still.modified_ns), *digests)
    return msgspec.structs.replace(made, name=name)


def pack_growth(still: FrozenFile, latest: StoredOriginal, originals: Originals) -> NewContent:
    """Return the new end of a file; a small last chunk is packed again with it."""
    pieces = originals.pieces(latest.id)
    start = len(pieces)
    if pieces and pieces[-1][1] <= SMALL:
        start -= 1
    return _packed(still, latest.name, sum(size for _, size in pieces[:start]), start)


def _packed(still: FrozenFile, name: int, offset: int, start: int, *, is_version: bool = False) -> NewContent:
    packer = Packer()
    if still.data is None:
        for place in range(offset, still.size, _STEP):
            packer.add(still.part(place, min(_STEP, still.size - place)))
    elif is_version:
        packer.add_by_content(still.data)
    else:
        packer.add(still.data[offset:] if offset else still.data)
    chunks = packer.ended()
    if not still.is_untouched():
        _compare(still, offset, chunks)
    return NewContent(name, still.size, still.modified_ns, seal(still.size, still.part), chunks, start)


def _compare(still: FrozenFile, offset: int, chunks: Iterable[Chunk]) -> None:
    """Compare chunks with a file that was written to meanwhile: appending is harmless, rewriting is not."""
    for chunk in chunks:
        if digest(still.part(offset, chunk.size)) != chunk.digest:
            raise FileChangedError(still.path)
        offset += chunk.size

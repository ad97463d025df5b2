"""What is new in a file since it was kept: nothing, its end, or all of it."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from retold.archive.originals import SMALL, Originals, Packer, digest, seal
from retold.archive.parcel import Fresh
from retold.archive.rows import name_of
from retold.ingest.snapshot import Still

_STEP = 1 << 20


class Kept(msgspec.Struct, frozen=True):
    """An original that is kept of a file."""

    id: int
    name: int
    size: int
    modified_ns: int
    seal: bytes
    is_latest: int


def fresh(agent: str, still: Still, latest: Kept | None, originals: Originals) -> Fresh | None:
    """Return what has to be kept of a file; None if it is what was kept last."""
    if latest is not None and _begins_with(still, latest, originals):
        return None if still.size == latest.size else _grown(still, latest, originals)
    return _named(agent, still, _packed(still, 0, 0, 0))


def _begins_with(still: Still, latest: Kept, originals: Originals) -> bool:
    """Return whether a file begins with the bytes of an original: chunk by chunk, after a look at samples."""
    if latest.size > still.size or seal(latest.size, still.part) != latest.seal:
        return False
    offset = 0
    for (_, size), known in zip(originals.pieces(latest.id), originals.digests(latest.id), strict=True):
        if digest(still.part(offset, size)) != known:
            return False
        offset += size
    return offset == latest.size


def _named(agent: str, still: Still, made: Fresh) -> Fresh:
    """Return an original with a name of its own: size and time may be those of another."""
    digests = [chunk.digest.hex() for chunk in made.chunks]
    name = name_of("original", agent, still.path, str(still.size), str(still.modified_ns), *digests)
    return msgspec.structs.replace(made, name=name)


def _grown(still: Still, latest: Kept, originals: Originals) -> Fresh:
    """Return the new end of a file; a small last chunk is packed again with it."""
    pieces = originals.pieces(latest.id)
    start = len(pieces)
    if pieces and pieces[-1][1] <= SMALL:
        start -= 1
    return _packed(still, latest.name, sum(size for _, size in pieces[:start]), start)


def _packed(still: Still, name: int, offset: int, start: int) -> Fresh:
    packer = Packer()
    if still.data is not None:
        packer.add(still.data[offset:] if offset else still.data)
    else:
        for place in range(offset, still.size, _STEP):
            packer.add(still.part(place, min(_STEP, still.size - place)))
    return Fresh(name, still.size, still.modified_ns, seal(still.size, still.part), packer.ended(), start)


def is_covered(earlier: Iterable[tuple[str | None, str]], later: Iterable[tuple[str | None, str]]) -> bool:
    """Tell whether everything of an earlier time is said by now: in the same words, or in more of the same message."""
    said, grown = set(), defaultdict(list)
    for name, text in later:
        said.add(text)
        grown[name].append(text)
    missing = {(name, text) for name, text in earlier if text not in said}
    return all(
        name is not None and any(text.startswith(begun) for text in grown.get(name, ()))
        for name, begun in missing
    )

"""What is new in a file since it was kept: nothing, its end, or all of it."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from retold.archive.originals import SMALL, Originals, Packer, seal
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
    if latest is not None and latest.size <= still.size and seal(latest.size, still.part) == latest.seal:
        return _grown(agent, still, latest, originals)
    return _named(agent, still, _packed(still, 0, 0, 0))


def _named(agent: str, still: Still, made: Fresh) -> Fresh:
    """Return an original with a name of its own: size and time may be those of another."""
    digests = [chunk.digest.hex() for chunk in made.chunks]
    name = name_of("original", agent, still.path, str(still.size), str(still.modified_ns), *digests)
    return msgspec.structs.replace(made, name=name)


def _grown(agent: str, still: Still, latest: Kept, originals: Originals) -> Fresh | None:
    pieces = originals.pieces(latest.id)
    if still.size == latest.size:
        made = _packed(still, latest.name, 0, 0)
        known = originals.digests(latest.id)
        # Cut otherwise, if it was kept while it grew: then the samples have to do.
        is_cut_alike = [chunk.size for chunk in made.chunks] == [size for _, size in pieces]
        if not is_cut_alike or [chunk.digest for chunk in made.chunks] == known:
            return None
        return _named(agent, still, made)
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

"""The lines of a rollout, compressed or not, a piece of it in memory at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from retold.agents.codex.places import PACKED
from retold.model.problem import Problem
from retold.reading.files import open_regular, refusal
from retold.reading.notes import Notes
from retold.reading.streams import Piece, open_lines, split_lines

CHUNK = 1 << 16


def packed_pieces(path: Path, notes: Notes) -> Iterator[Piece] | Problem:
    """Return the lines of a zstd file; where it is damaged, they end and the notes tell."""
    try:
        file = open(open_regular(path), "rb")  # noqa: SIM115 - closed behind the last line
    except (OSError, ValueError) as error:
        return refusal(path, error)
    return _pieces(file, notes)


def pieces_of(path: Path, notes: Notes) -> Iterator[Piece]:
    """Yield the lines of a file in either form; none, if it cannot be opened."""
    if path.name.endswith(PACKED):
        found = packed_pieces(path, notes)
        yield from () if isinstance(found, Problem) else found
        return
    file = open_lines(path)
    if not isinstance(file, Problem):
        with file:
            yield from file.pieces()


def _pieces(file: IO[bytes], notes: Notes) -> Iterator[Piece]:
    import zstandard  # noqa: PLC0415 - few homes hold a compressed rollout

    with file, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as stream:

        def read() -> bytes:
            try:
                # What was unpacked before the damage is given before it is told.
                return stream.read1(CHUNK)
            except zstandard.ZstdError as error:
                notes.add("malformed-json", f"damaged compression: {error}")
                return b""

        for number, (raw, is_whole) in enumerate(split_lines(read), 1):
            yield number, raw, is_whole

"""The lines of a rollout, compressed or not, a piece of it in memory at a time."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, cast

from retold.agents.codex.places import PACKED
from retold.model.problem import Problem
from retold.reading.diagnostics import ReaderNotes
from retold.reading.disk import Disk, OpenFile, open_file
from retold.reading.jsonl import Piece, open_lines, split_lines

CHUNK = 1 << 16


def pieces_of(path: Path, notes: ReaderNotes, disk: Disk) -> Iterator[Piece]:
    """Yield the lines of a file in either form; none, if it cannot be opened."""
    if path.name.endswith(PACKED):
        packed = open_file(path, disk)
        if not isinstance(packed, Problem):
            with closing(packed):
                yield from packed_pieces(packed, notes)
        return
    file = open_lines(path, disk=disk)
    if not isinstance(file, Problem):
        with file:
            yield from file.pieces()


def packed_pieces(file: OpenFile, notes: ReaderNotes) -> Iterator[Piece]:
    """Yield the lines of a zstd file; where it is damaged, they end and the notes tell."""
    import zstandard  # noqa: PLC0415 - few homes hold a compressed rollout

    packed = cast("IO[bytes]", file)  # nothing is asked of it but `read`
    unpacking = zstandard.ZstdDecompressor()
    with unpacking.stream_reader(packed, read_across_frames=True, closefd=False) as stream:

        def read() -> bytes:
            try:
                # What was unpacked before the damage is given before it is told.
                return stream.read1(CHUNK)
            except zstandard.ZstdError as error:
                notes.add("malformed-json", f"damaged compression: {error}")
                return b""

        for number, (raw, is_whole) in enumerate(split_lines(read), 1):
            yield number, raw, is_whole

"""Originals read whole and in parts: a chunk is compared with its checksum before any part of it is used."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from retold.archive.database import DamagedError
from retold.archive.store import CHUNK, Chunk, Packer, Store, compress, decompress, digest
from support.conversation_files import FORMS, dice, turns
from support.person import Person

WORD = "ferry"
CHECKSUM = 4
"""Bytes at the end of what zstd packs."""
PIECES = (b"heron", b"o", b"dunlin")


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path), can_write=True) as record:
        yield record


def keep(record: Store, data: bytes, original: int = 1) -> None:
    packer = Packer()
    packer.add(data)
    record.originals.write(original, packer.finish())


def changed(chunk: bytes, known: bytes, other: bytes) -> bytes:
    """Return a chunk that unpacks to other bytes, with the checksum of what it held: as a changed byte on disk makes it."""
    data = decompress(chunk)
    assert data.count(known) == 1
    return compress(data.replace(known, other))[:-CHECKSUM] + chunk[-CHECKSUM:]


def test_a_part_of_a_damaged_chunk_is_not_given(record: Store) -> None:
    chance = dice(3)
    data = chance.randbytes(CHUNK // 2) + b"the harbour opens at nine" + chance.randbytes(CHUNK)
    keep(record, data)
    assert record.originals.read(1, CHUNK // 2, 25) == b"the harbour opens at nine"
    with record.connection:
        (chunk,) = next(record.rows("SELECT packed FROM chunks WHERE id = 1"))
        forged = changed(chunk, b"opens at nine", b"opens at five")
        record.connection.execute("UPDATE chunks SET packed = ? WHERE id = 1", (forged,))
    with Store(record.folder) as reader:
        for start, size in ((CHUNK // 2, 25), (0, 10), (CHUNK - 5, 5)):
            with pytest.raises(DamagedError, match="damaged"):
                reader.originals.read(1, start, size)
        assert reader.originals.read(1, CHUNK, 100) == data[CHUNK : CHUNK + 100]  # the next chunk is whole


def test_what_is_read_after_a_file_has_grown_is_what_was_put_last(record: Store) -> None:
    keep(record, b"low tide")
    assert record.originals.read(1) == b"low tide"
    keep(record, b"low tide at nine")
    assert record.originals.read(1) == b"low tide at nine"


def test_a_chunk_of_another_size_is_damaged(record: Store) -> None:
    keep(record, b"low tide " * 100)
    with record.connection:
        record.connection.execute("UPDATE chunks SET size = size - 1")
    with Store(record.folder) as reader, pytest.raises(DamagedError):
        reader.originals.read(1, 5, 5)


def test_a_chunk_is_unpacked_once_for_many_parts(record: Store) -> None:
    keep(record, dice(4).randbytes(CHUNK + 1000))
    with Store(record.folder) as reader:
        reader.begin_snapshot()
        asked: list[str] = []
        reader.connection.trace_v2(1, lambda told: asked.append(told["sql"]))
        for place in range(0, 200_000, 1000):
            reader.originals.read(1, place, 1000)
        assert len([sql for sql in asked if "SELECT packed" in sql]) == 1


@pytest.mark.parametrize("command", ["show", "search"])
def test_changed_text_is_never_shown(tmp_path: Path, command: str) -> None:
    person = Person(tmp_path / "ann")
    form = FORMS["claude"]
    form.write(person.folder, 2, turns(WORD, "low", "high"))
    person.age()
    person.sync()
    with Store(str(person.archive), can_write=True) as record:
        ((number, chunk),) = record.rows("SELECT id, packed FROM chunks")
        forged = changed(chunk, f"asked {WORD}".encode(), f"never {WORD}".encode())
        record.connection.execute("UPDATE chunks SET packed = ? WHERE id = ?", (forged, number))
    done = person.run("show", form.key(2)) if command == "show" else person.run("search", WORD)
    # A search shows the conversation without the text that it cannot read.
    assert (done.code, done.out == "") == ((4, True) if command == "show" else (0, False)), done
    assert "never" not in done.out
    assert "damaged" in done.err


def chunks(*pieces: bytes) -> list[Chunk]:
    return [Chunk(digest(piece), len(piece), compress(piece)) for piece in pieces]


def test_every_part_of_an_original_is_what_the_file_holds_there(record: Store) -> None:
    content = b"".join(PIECES)
    record.originals.write(1, chunks(*PIECES))
    for start in range(len(content) + 2):
        assert record.originals.read(1, start) == content[start:]
        for size in range(len(content) + 2):
            assert record.originals.read(1, start, size) == content[start : start + size], (start, size)


def test_a_reader_sees_what_another_connection_wrote_in_the_meantime(record: Store) -> None:
    record.originals.write(1, chunks(b"heron otter"))
    with Store(record.folder) as reader:
        assert reader.originals.read(1, 0, 5) == b"heron"
        record.originals.drop(1)
        record.originals.remove_unused_chunks()
        record.originals.write(1, chunks(b"plover dunlin"))  # with the numbers of what it replaces
        assert reader.originals.read(1, 0, 6) == b"plover"

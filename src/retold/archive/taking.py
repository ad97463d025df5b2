"""What is taken from another's archive: originals under paths of their own, and what a person wrote by hand."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from retold.archive.clues import clues_of, keep_clues
from retold.archive.hand import add_tag, keep_title, tags
from retold.archive.originals import Chunk, Originals, digest, packed, seal
from retold.archive.record import Store, as_path, as_stored, as_text
from retold.archive.rows import stable_uid
from retold.archive.settling import resolve_relations
from retold.archive.writer import DISPENSABLE

if TYPE_CHECKING:
    from retold.archive.clues import Told


def own_paths(record: Store, agent: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield every file of an agent of which something is kept, with its home and the folder of its sessions."""
    asked = (
        "SELECT id, path, home, folder FROM sources WHERE agent = ?"
        " AND EXISTS (SELECT 1 FROM originals WHERE source = sources.id AND is_latest >= 0)"
    )
    for number, *places in record.rows(asked, (agent,)):
        path, home, folder = map(as_path, places)
        yield number, path, home, folder


def own_originals(record: Store, source: int) -> list[tuple[int, int, int]]:
    """Return what is kept of a file, with size and time of each, the latest first."""
    asked = (
        "SELECT id, size, modified_ns FROM originals WHERE source = ? AND is_latest >= 0"
        " ORDER BY modified_ns DESC, size DESC, name"
    )
    return [(number, size, modified_ns) for number, size, modified_ns in record.rows(asked, (source,))]


def sessions_of(record: Store, source: int) -> list[int]:
    """Return the names of the sessions that were read from a file."""
    asked = "SELECT name FROM sessions JOIN session_sources ON session = sessions.id WHERE source = ?"
    return [name for (name,) in record.rows(asked, (source,))]


def put_source(  # noqa: PLR0913 - as many as a file has
    record: Store,
    agent: str,
    path: str,
    home: str,
    folder: str,
    label: str,
    cluster: str | None,
    *,
    is_beside: bool,
) -> int:
    """Make sure that a file of another machine is known, and that its cluster is read again."""
    ask, place = record.connection.execute, as_stored(path)
    ask("UPDATE sources SET revision = 0 WHERE agent = ? AND cluster IS ?", (agent, cluster))
    known = ask("SELECT id, cluster FROM sources WHERE agent = ? AND path = ?", (agent, place)).fetchone()
    if known is not None:
        # It may belong to another cluster by now than its name tells.
        ask("UPDATE sources SET revision = 0 WHERE agent = ? AND cluster IS ?", (agent, known[1]))
        return int(known[0])
    ask(
        "INSERT INTO sources VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, x'', 0, 0, NULL, '')",
        (agent, as_stored(home), as_stored(folder), as_text(label), place, cluster, is_beside),
    )
    return record.connection.last_insert_rowid()


def put_original(
    record: Store, source: int, named: Sequence[str], modified_ns: int, pieces: Iterable[bytes]
) -> None:
    """Keep what a file held, a piece in memory at a time; `named` are the words that tell it from others."""
    ask, originals = record.connection.execute, record.originals
    ask("INSERT INTO originals VALUES (NULL, random(), ?, 0, 0, ?, x'')", (source, modified_ns))
    number, size, digests = record.connection.last_insert_rowid(), 0, []
    for place, data in enumerate(pieces):
        name = digest(data)
        is_known = ask("SELECT 1 FROM chunks WHERE digest = ?", (name,)).get
        originals.put(number, [Chunk(name, len(data), b"" if is_known else packed(data))], place)
        digests.append(name.hex())
        size += len(data)
    told = stable_uid("original", *named, str(size), str(modified_ns), *digests)
    if ask("SELECT 1 FROM originals WHERE name = ?", (told,)).get is not None:
        originals.drop(number)
        return
    state = (told, size, seal(size, lambda start, length: originals.data(number, start, length)), number)
    ask("UPDATE originals SET name = ?, size = ?, seal = ? WHERE id = ?", state)


def choose_latest(record: Store, source: int) -> None:
    """Let the original of the latest time be the one that a file holds; what one of them begins with goes."""
    ask = record.connection.execute
    kept: list[tuple[int, int]] = []
    for number, size, modified_ns in own_originals(record, source):
        if any(_begins(record.originals, longer, number, size) for longer, length in kept if length >= size):
            ask("UPDATE originals SET is_latest = ? WHERE id = ?", (DISPENSABLE, number))
            continue
        ask("UPDATE originals SET is_latest = ? WHERE id = ?", (not kept, number))
        if not kept:
            ask("UPDATE sources SET size = ?, modified_ns = ? WHERE id = ?", (size, modified_ns, source))
        kept.append((number, size))


def _begins(originals: Originals, longer: int, number: int, size: int) -> bool:
    """Tell whether one original begins with another."""
    place = 0
    for _, length in list(originals.pieces(number)):
        if originals.data(number, place, length) != originals.data(longer, place, length):
            return False
        place += length
    return place == size


def add_clues(record: Store, home: str, told: Iterable["Told"]) -> None:
    """Keep what a home of another machine said about its projects, beside what is known of it."""
    known = clues_of(record, home)
    new = {(as_text(root), evidence, key and as_text(key)) for root, evidence, key in told}
    if new - known:
        keep_clues(record, home, sorted(known | new, key=str))


def hand_of(record: Store, name: int) -> tuple[str | None, list[str]]:
    """Return the title and the tags that a person gave."""
    row = record.row("SELECT title FROM names WHERE name = ?", (name,))
    return (None if row is None else row[0]), tags(record, name)


def put_hand(record: Store, titles: Sequence[tuple[int, str]], given: Sequence[tuple[int, str]]) -> None:
    """Keep titles and tags, and tell the sessions that have them."""
    for name, title in titles:
        keep_title(record, name, as_text(title))
    for name, tag in given:
        add_tag(record, name, as_text(tag))
    asked = "SELECT id FROM sessions WHERE name = ?"
    names = {name for name, _ in (*titles, *given)}
    resolve_relations(record, [number for name in names for (number,) in record.rows(asked, (name,))])

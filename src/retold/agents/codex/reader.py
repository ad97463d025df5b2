"""A file to readings: its form found, its lines folded."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from retold.agents.codex.discovery import ARCHIVED, PACKED, Name, find_rollout, name_of
from retold.agents.codex.raw import Record, form_of, text_or_none
from retold.agents.codex.replay import before, fold_bare, fold_slowly, meet_session, replay
from retold.agents.codex.state import Meter, State, copied
from retold.agents.codex.thread_lists import read_list
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem, problem
from retold.reading.diagnostics import ReaderNotes
from retold.reading.disk import Disk, FileBytes, OpenFile, modified_at, open_file, read_bytes, remove_nuls
from retold.reading.json_decode import Decoded, Undecodable, as_json_text, decode, salvage
from retold.reading.jsonl import START, FileMark, LineFile, Piece, open_lines, split_lines

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


NOWHERE = sys.maxsize
"""Behind every place: a copy of which no line is its own yet."""


def own_from(state: State, source: Source) -> int | None:
    """Return where a copied thread begins to be its own: by its turns' ids, else by comparison with its parent."""
    if not state.is_copying:
        return state.own_from
    if state.has_turn_ids:
        return NOWHERE
    path = find_rollout(state.copied_from, source) if state.copied_from else None
    if path is None:
        return None
    notes = ReaderNotes(source.shown)
    mine, theirs = (pieces_of(file, notes, source.disk) for file in (source.path, path))
    next(mine, None)
    place = 1
    for (_, own, _), (_, parent, _) in zip(mine, theirs, strict=False):
        if _without_time(own) != _without_time(parent):
            break
        place += 1
    return place


def _without_time(raw: bytes | memoryview) -> Any:
    """Return a line without its time, of which a copy has its own."""
    found = decode(raw)
    value = found.value if isinstance(found, Decoded) else bytes(raw)
    return {key: value[key] for key in value if key != "timestamp"} if type(value) is dict else value


DEPTH = 16
"""How many files a thread may go on from, one behind the other."""


class Rollout(msgspec.Struct, frozen=True):
    """A file, as far as it was read."""

    name: Name | None
    state: State
    settled: State
    """The state at the last line end: from here a file that has grown is read on."""
    mark: FileMark = START
    base: "Rollout | None" = None
    own_from: int | None = None
    """The place of the first line that is not another thread's; None where all are its own."""
    is_archived: bool = False

    @property
    def thread(self) -> str | None:
        """The id of the thread: as the file says, else as its name does."""
        return text_or_none(self.state.meta.get("id")) or (self.name.thread if self.name else None)

    @property
    def id(self) -> str | None:
        """The id of this file among those of its thread: the thread's, unless it was written after going back."""
        return self.thread if self.name is None or self.name.is_first else self.name.rollout


def new_state(source: Source, pointer: str = "") -> State:
    """Return the state of a file of which nothing was read."""
    name = name_of(source.path)
    rollout = name.rollout if name else source.path.name.partition(".")[0]
    is_of_thread = name is None or name.is_first
    return State(ReaderNotes(source.shown, pointer), Meter(rollout, f"{rollout}/1", is_of_thread))


def read_lines(source: Source, file: LineFile, known: Rollout | None) -> Rollout:
    """Fold what stands in an open file behind its mark into what is known of it."""
    earlier = None if file.mark == START else known
    settled = copied(earlier.settled) if earlier else new_state(source)
    tail = replay(settled, file.pieces())
    state = settled
    if tail is not None:
        state = copied(settled)
        fold_slowly(state, tail)
    return rollout(source, state, settled, file.mark, earlier.base if earlier else None)


def read_packed(source: Source, file: OpenFile) -> Rollout:
    """Read a file that Codex compressed when it had lain for a week."""
    state = new_state(source)
    tail = replay(state, packed_pieces(file, state.notes))
    if tail is not None:
        fold_slowly(state, tail)
    return rollout(source, state, state)


def rollout(
    source: Source, state: State, settled: State, mark: FileMark = START, base: Rollout | None = None
) -> Rollout:
    """Return a file with all that lies around it: the one it goes on from, the one it was copied from."""
    return Rollout(
        name_of(source.path),
        state,
        settled,
        mark,
        base or _base(state.meta, source),
        own_from(state, source),
        source.path.parent.name == ARCHIVED,
    )


def _base(meta: Record, source: Source, depth: int = DEPTH) -> Rollout | None:
    """Return the file that one goes on from, up to where it does: no line of it is repeated."""
    named = meta.get("history_base")
    base: Record = named if type(named) is dict else {}
    name, end = base.get("thread_id"), base.get("end_ordinal_exclusive")
    path = find_rollout(name, source) if type(name) is str else None
    if path is None or path == source.path or type(end) is not int or not depth:
        return None
    below = Source(path, source.home)
    state = new_state(below)
    replay(state, before(pieces_of(path, state.notes, source.disk), end))
    further = _base(state.meta, below, depth - 1)
    return Rollout(name_of(path), state, state, base=further, own_from=own_from(state, below))


def read_document(source: Source) -> Sequence[Reading] | Problem:
    """Read `{"session": {...}, "items": [...]}`."""
    file = read_bytes(source.path, source.disk)
    if isinstance(file, Problem):
        return file
    found = _object(file, source.shown)
    if isinstance(found, Problem):
        return found
    document, problems = found
    state = new_state(source, pointer="/items")
    _fold(state, document)
    told = rollout(source, state, state)
    return (
        Reading(
            source, "codex-json", told.thread, file.size, file.modified_at, told, (*file.problems, *problems)
        ),
    )


def _object(file: FileBytes, path: str) -> tuple[Record, tuple[Problem, ...]] | Problem:
    """Return the document, or what is whole of one that is cut."""
    data, skipped = remove_nuls(file)
    match decode(data):
        case Decoded(dict(value), mended=mended) if _is_session(value):
            return value, (*skipped, *(problem(code, message, path) for code, message in mended))
        case Undecodable(code, message):
            text, mended = as_json_text(data)
            found = salvage(text, "items", lambda item: type(item) is dict and "type" in item)
            if found is not None and _is_session({**found.fields, "items": []}):
                line = text.count("\n", 0, found.broken_at) + 1
                told = problem("truncated-tail" if found.is_cut else code, message, path, line)
                replaced = (problem(code, message, path) for code, message in mended)
                return {**found.fields, "items": found.elements}, (told, *skipped, *replaced)
    return problem("not-a-session", "JSON, but no conversation in a known form", path)


def _is_session(value: Record) -> bool:
    return type(value.get("session")) is dict and type(value.get("items")) is list


def _fold(state: State, document: Record) -> None:
    beside = {key: value for key, value in document.items() if key not in ("session", "items")}
    meet_session(state, {**beside, **document["session"]}, None)
    state.records = 1
    for index, item in enumerate(document["items"]):
        state.records += 1
        state.place = index + 1
        state.notes.place = (0, index)
        fold_bare(state, _as_record(item))


def _as_record(item: Any) -> Record:
    return item if type(item) is dict else {"value": item}


def read(source: Source, earlier: Sequence[Reading] = ()) -> Sequence[Reading] | Problem:
    """Read a file; given what an earlier call returned, only what was appended since."""
    if source.path.name.endswith(PACKED):
        return _packed(source)
    form = form_of(source.path, source.disk)
    match form:
        case Problem():
            return form
        case "document":
            return read_document(source)
        case "history" | "index":
            return read_list(source, form)
    known = _known(earlier)
    file = open_lines(source.path, known.mark if known else START, source.disk)
    if isinstance(file, Problem):
        return file
    with file:
        found = read_lines(source, file, known)
        name = "codex-jsonl" if form == "lines" else "codex-items"
        return (Reading(source, name, found.thread, file.size, file.modified_at, found, ()),)


def _known(earlier: Sequence[Reading]) -> Rollout | None:
    """Return what was read before, if it can be gone on with."""
    if len(earlier) != 1 or not isinstance(earlier[0].state, Rollout):
        return None
    known: Rollout = earlier[0].state
    return known if known.mark != START else None


def _packed(source: Source) -> Sequence[Reading] | Problem:
    file = open_file(source.path, source.disk)
    if isinstance(file, Problem):
        return file
    with closing(file):
        found = read_packed(source, file)
    if not found.state.meta:
        return problem("not-a-session", "compressed, but no conversation of Codex", source.shown)
    at = modified_at(file.modified_ns)
    return (Reading(source, "codex-jsonl-zst", found.thread, file.size, at, found, ()),)

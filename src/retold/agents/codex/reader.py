"""Reads a file: detects its form, folds its lines, and finds the files that it continues."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any, cast

import msgspec
from msgspec.structs import replace

from retold.agents.bookmarks import find_places
from retold.agents.codex.discovery import ARCHIVED, ZST, RolloutName, find_rollout, parse_name
from retold.agents.codex.raw import Record, is_place, read_form
from retold.agents.codex.replay import fold_bare_record, fold_session_meta, fold_slowly, replay, take_before
from retold.agents.codex.state import EarlierPart, State, TokenMeter, copy_state
from retold.agents.codex.thread_lists import read_list
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem, problem
from retold.reading.diagnostics import ReaderNotes
from retold.reading.disk import Disk, FileBytes, OpenFile, open_file, read_bytes, remove_nuls, time_from_ns
from retold.reading.json_decode import (
    JsonFailure,
    JsonValue,
    decode,
    decode_json_text,
    repair_problems,
    salvage,
    text_or_none,
)
from retold.reading.jsonl import FILE_START, FileMark, LineFile, Piece, open_lines, split_lines

CHUNK = 1 << 16


def read_pieces(path: Path, notes: ReaderNotes, disk: Disk) -> Iterator[Piece]:
    """Yield the lines of a plain or compressed file; none if it cannot be opened."""
    if path.name.endswith(ZST):
        packed = open_file(path, disk)
        if not isinstance(packed, Problem):
            with closing(packed):
                yield from unpack_pieces(packed, notes)
        return
    file = open_lines(path, disk=disk)
    if not isinstance(file, Problem):
        with file:
            yield from file.pieces()


def unpack_pieces(file: OpenFile, notes: ReaderNotes) -> Iterator[Piece]:
    """Yield the lines of a zstd file up to any damage, which is added to the notes."""
    import zstandard  # few homes hold a compressed rollout

    packed = cast("IO[bytes]", file)  # only its method `read` is used
    unpacking = zstandard.ZstdDecompressor()
    with unpacking.stream_reader(packed, read_across_frames=True, closefd=False) as stream:

        def read() -> bytes:
            try:
                # The bytes unpacked before the damage come before the problem.
                return stream.read1(CHUNK)
            except zstandard.ZstdError as error:
                notes.add("malformed-json", f"damaged compression: {error}")
                return b""

        for number, (raw, is_whole) in enumerate(split_lines(read), 1):
            yield number, raw, is_whole


NO_OWN_LINE = sys.maxsize
"""A place behind all others: no line of a copy is its own yet."""


def find_own_start(state: State, source: Source) -> int | None:
    """Return the place where a copied thread's own lines begin: by its turns' ids, else by comparison with its parent."""
    if not state.is_copying:
        return state.own_start
    if state.has_turn_ids:
        return NO_OWN_LINE
    path = find_rollout(state.copied_from, source) if state.copied_from else None
    if path is None:
        return None
    notes = ReaderNotes(source.display_path)
    mine, theirs = (read_pieces(file, notes, source.disk) for file in (source.path, path))
    next(mine, None)
    place = 1
    for (_, own, _), (_, parent, _) in zip(mine, theirs, strict=False):
        if _without_time(own) != _without_time(parent):
            break
        place += 1
    return place


def _without_time(raw: bytes | memoryview) -> Any:
    """Return a line without its time, which differs in a copy."""
    found = decode(raw)
    value = found.value if isinstance(found, JsonValue) else bytes(raw)
    return {key: value[key] for key in value if key != "timestamp"} if type(value) is dict else value


DEPTH = 16
"""How many files in a row a thread may continue."""


class BookmarkPlace(msgspec.Struct, frozen=True):
    """A place for a bookmark."""

    mark: FileMark
    state: State
    """The state there, without entries."""
    entries: int
    turns: int
    """The numbers of entries and turns before it."""


class Rollout(msgspec.Struct, frozen=True):
    """A file as far as it was read."""

    name: RolloutName | None
    state: State
    base: "Rollout | None" = None
    own_start: int | None = None
    """The place of the first line that is not another thread's; None if all are its own."""
    is_archived: bool = False
    mark: FileMark = FILE_START
    """The place of the bookmark from which it was read."""
    earlier: EarlierPart | None = None
    bookmark_places: tuple[BookmarkPlace, ...] = ()

    @property
    def thread(self) -> str | None:
        """The id of the thread in the file, else in its name."""
        return text_or_none(self.state.meta.get("id")) or (self.name.thread if self.name else None)

    @property
    def id(self) -> str | None:
        """The id of this file among those of its thread: the thread's, unless it was written after a return to an earlier turn."""
        return self.thread if self.name is None or self.name.is_first else self.name.rollout


def new_state(source: Source, pointer: str = "") -> State:
    """Return the state of an unread file."""
    name = parse_name(source.path)
    rollout = name.rollout if name else source.path.name.partition(".")[0]
    is_of_thread = name is None or name.is_first
    return State(ReaderNotes(source.display_path, pointer), TokenMeter(rollout, f"{rollout}/1", is_of_thread))


def read_lines(source: Source, file: LineFile, state: State) -> tuple[BookmarkPlace, ...]:
    """Fold the lines of an open file behind its mark into a state; return the places for bookmarks."""
    places: list[BookmarkPlace] = []
    if source.is_growing:
        for end in find_places(file.read_part, file.mark.offset, file.size, is_place):
            replay(state, file.pieces(end))
            bare = replace(state, entries=[], places=[], texts=set(), turns=[], unconfirmed={})
            places.append(BookmarkPlace(file.mark, copy_state(bare), len(state.entries), len(state.turns)))
    tail = replay(state, file.pieces())
    if tail is not None:
        fold_slowly(state, tail)
    return tuple(places)


def read_compressed(source: Source, file: OpenFile) -> Rollout:
    """Read a file that Codex compressed after a week."""
    state = new_state(source)
    tail = replay(state, unpack_pieces(file, state.notes))
    if tail is not None:
        fold_slowly(state, tail)
    return make_rollout(source, state)


def make_rollout(source: Source, state: State, bookmark_places: tuple[BookmarkPlace, ...] = ()) -> Rollout:
    """Return a file with the one that it continues and the start of its own lines."""
    return Rollout(
        parse_name(source.path),
        state,
        _read_base(state.meta, source),
        find_own_start(state, source),
        source.path.parent.name == ARCHIVED,
        bookmark_places=bookmark_places,
    )


def _read_base(meta: Record, source: Source, depth: int = DEPTH) -> Rollout | None:
    """Return the file that a thread continues, up to the end that it names; its lines are not repeated."""
    named = meta.get("history_base")
    base: Record = named if type(named) is dict else {}
    name, end = base.get("thread_id"), base.get("end_ordinal_exclusive")
    path = find_rollout(name, source) if type(name) is str else None
    if path is None or path == source.path or type(end) is not int or not depth:
        return None
    below = Source(path, source.home)
    state = new_state(below)
    replay(state, take_before(read_pieces(path, state.notes, source.disk), end))
    further = _read_base(state.meta, below, depth - 1)
    return Rollout(parse_name(path), state, further, find_own_start(state, below))


def read_document(source: Source) -> Sequence[Reading] | Problem:
    """Read `{"session": {...}, "items": [...]}`."""
    file = read_bytes(source.path, source.disk)
    if isinstance(file, Problem):
        return file
    document_and_problems = _decode_document(file, source.display_path)
    if isinstance(document_and_problems, Problem):
        return document_and_problems
    document, problems = document_and_problems
    state = new_state(source, pointer="/items")
    _fold_document(state, document)
    rollout = make_rollout(source, state)
    return (
        Reading(
            source,
            "codex-json",
            rollout.thread,
            file.size,
            file.modified_at,
            rollout,
            (*file.problems, *problems),
        ),
    )


def _decode_document(file: FileBytes, path: str) -> tuple[Record, tuple[Problem, ...]] | Problem:
    data, skipped = remove_nuls(file)
    match decode(data):
        case JsonValue(dict(value), repairs=repairs) if _is_session(value):
            return value, (*skipped, *repair_problems(repairs, path))
        case JsonFailure(code, message):
            text, repairs = decode_json_text(data)
            found = salvage(text, "items", lambda item: type(item) is dict and "type" in item)
            if found is not None and _is_session({**found.fields, "items": []}):
                line = text.count("\n", 0, found.broken_at) + 1
                damage = problem("truncated-tail" if found.is_cut else code, message, path, line)
                return {**found.fields, "items": found.elements}, (
                    damage,
                    *skipped,
                    *repair_problems(repairs, path),
                )
    return problem("not-a-session", "JSON, but no conversation in a known form", path)


def _is_session(value: Record) -> bool:
    return type(value.get("session")) is dict and type(value.get("items")) is list


def _fold_document(state: State, document: Record) -> None:
    fields = {key: value for key, value in document.items() if key not in ("session", "items")}
    fold_session_meta(state, {**fields, **document["session"]}, None)
    state.records = 1
    for index, item in enumerate(document["items"]):
        state.records += 1
        state.place = index + 1
        state.notes.place = (0, index)
        fold_bare_record(state, _as_record(item))


def _as_record(item: Any) -> Record:
    return item if type(item) is dict else {"value": item}


def read(source: Source, earlier: Sequence[Reading] = ()) -> Sequence[Reading] | Problem:
    """Read a file; given the reading of its beginning, read only what follows."""
    if source.path.name.endswith(ZST):
        return _read_compressed(source)
    form = read_form(source.path, source.disk)
    match form:
        case Problem():
            return form
        case "document":
            return read_document(source)
        case "history" | "index":
            return read_list(source, form)
    before: Rollout | None = earlier[0].state if earlier else None
    file = open_lines(source.path, FILE_START if before is None else before.mark, source.disk)
    if isinstance(file, Problem):
        return file
    with file:
        if before is None:
            state = new_state(source)
            found = make_rollout(source, state, read_lines(source, file, state))
        else:
            found = replace(before, bookmark_places=read_lines(source, file, before.state))
        name = "codex-jsonl" if form == "lines" else "codex-items"
        return (Reading(source, name, found.thread, file.size, file.modified_at, found, ()),)


def _read_compressed(source: Source) -> Sequence[Reading] | Problem:
    file = open_file(source.path, source.disk)
    if isinstance(file, Problem):
        return file
    with closing(file):
        found = read_compressed(source, file)
    if not found.state.meta:
        return problem("not-a-session", "compressed, but no conversation of Codex", source.display_path)
    at = time_from_ns(file.modified_ns)
    return (Reading(source, "codex-jsonl-zst", found.thread, file.size, at, found, ()),)

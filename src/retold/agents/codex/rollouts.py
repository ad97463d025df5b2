"""One file of a thread: its lines folded, and the file that it goes on from."""

import msgspec

from retold.agents.codex.copies import own_from
from retold.agents.codex.packed import packed_pieces, pieces_of
from retold.agents.codex.places import ARCHIVED, Name, find_rollout, name_of
from retold.agents.codex.raw import Record, text_or_none
from retold.agents.codex.replay import before, fold_slowly, replay
from retold.agents.codex.state import Meter, State, copied
from retold.agents.protocol import Source
from retold.reading.diagnostics import ReaderNotes
from retold.reading.disk import OpenFile
from retold.reading.jsonl import START, FileMark, LineFile

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

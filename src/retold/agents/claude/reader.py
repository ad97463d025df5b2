"""A file to readings: told by its content, then folded line by line."""

from collections.abc import Iterable, Sequence
from datetime import UTC
from operator import attrgetter
from typing import Any

import msgspec

from retold.agents.claude.discovery import origin
from retold.agents.claude.messages import Spoken, answer_part, spoken
from retold.agents.claude.raw import (
    ANSWER_ASIDE,
    DECODER,
    RESPONSE_ASIDE,
    SAID_ASIDE,
    USAGE_ASIDE,
    AnswerLine,
    Chained,
    Record,
    SaidLine,
    UsageRecord,
    is_spread,
    join_halves,
    known_line,
)
from retold.agents.claude.session import Recorded, places_by_chain
from retold.agents.claude.side_records import KNOWN, TITLES, beside, unknown
from retold.agents.claude.state import MAIN, Node, State, delivered
from retold.agents.claude.tool_calls import called, given
from retold.agents.claude.tool_results import Outputs, served
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem, problem
from retold.model.serialization import shown_value, whole_value
from retold.model.session import Context, Entry, Event, Message, Part, Text, ToolCall
from retold.model.usage import Usage
from retold.reading.diagnostics import ReaderNotes
from retold.reading.disk import Disk
from retold.reading.jsonl import START, JsonLine, LineFile, Piece, decode_line, open_lines

SYNTHETIC = "<synthetic>"
"""The model of messages that Claude Code made up itself."""


def counted(line: AnswerLine, state: State) -> Usage | None:
    """Return the tokens of a response, if no line of it has told more output; the one that told less gives them up.

    Output grows while a response is streamed, everything else stays: the largest is the last that was written.
    """
    record = line.message.usage
    if record is None or line.message.model == SYNTHETIC or line.is_api_error_message:
        return None
    request = request_of(line)
    known = state.responses.get(request)
    if known is not None:
        place, output, _ = known
        if output > (record.output_tokens or 0):
            return None
        bearer = state.nodes[place].entry
        if isinstance(bearer, Message):
            state.put(place, msgspec.structs.replace(bearer, usage=None))
    return usage(record, request)


def request_of(line: AnswerLine) -> str:
    """Return what all lines of one response share, in every file that holds it: copies by 1.0 lack the `requestId`."""
    return line.message.id or line.request_id or f"{line.session_id}/{line.uuid}"


def usage(record: UsageRecord, request: str) -> Usage:
    """Return what is recorded: the counts do not overlap, and `output_tokens` has the thinking in it."""
    read, written = record.cache_read_input_tokens, record.cache_creation_input_tokens
    given = _sum(record.input_tokens, read, written)
    output, thought = record.output_tokens, _thought(record)
    split = record.cache_creation
    return Usage(
        request,
        given,
        read,
        written,
        output if output is None or thought is None else output - thought,
        thought,
        None,
        _sum(given, output),
        False,  # noqa: FBT003 - by position: as often as there are lines
        None if split is None else split.ephemeral_1h_input_tokens,
    )


def _sum(*counts: int | None) -> int | None:
    """Return the sum of what is recorded; nothing, if nothing is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _thought(record: UsageRecord) -> int | None:
    """Return how much of the output was thinking, which newer versions tell."""
    match record.output_tokens_details:
        case {"thinking_tokens": int(count)} if 0 <= count <= (record.output_tokens or 0):
            return count
        case _:
            return None


_facts = attrgetter("cwd", "version", "git_branch", "user_type", "entrypoint", "slug")
_USUAL: Record = {}
"""What a usual line holds besides."""
_USUAL_SERVICE = ("", "standard", "not_available")
"""How nearly all responses were served: not worth telling of each."""


def replay(state: State, pieces: Iterable[Piece], disk: Disk) -> Piece | None:
    """Fold lines into a state, which changes; return the last one if it has no end, unfolded."""
    fold = _Fold(state, disk)
    torn = None
    for piece in pieces:
        if piece[2]:
            fold.take(piece[0], piece[1])
        else:
            torn = piece
    state.opaque += fold.notes.opaque
    return torn


def replay_torn(state: State, piece: Piece, disk: Disk) -> None:
    """Fold a line in that is still being written: it may be whole all the same."""
    fold = _Fold(state, disk)
    fold.take(piece[0], piece[1], is_whole=False)
    state.opaque += fold.notes.opaque


class _Fold:
    """The state while it changes, and where what is odd is written down."""

    def __init__(self, state: State, disk: Disk) -> None:
        self.state = state
        self.notes = ReaderNotes(state.path)
        self.notes.problems = state.problems
        self.outputs = Outputs(state.origin.session_folder, self.notes, disk)
        self.session = next(reversed(state.sessions), None)

    def take(self, number: int, raw: bytes | memoryview, *, is_whole: bool = True) -> None:
        """Fold one line in: nearly all are checked whole, and the rest is taken apart."""
        self.notes.place = (number, 0)
        try:
            line = DECODER.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            line = None
        if line is None or line.timestamp is None or line.timestamp.tzinfo is not UTC:
            self.take_apart(number, raw, is_whole=is_whole)
            return
        self.state.records += 1
        if self.state.is_copy(line.uuid or f"{type(line).__name__} {line.timestamp}", hash(raw)):
            return
        if type(line) is SaidLine:
            self.said(line, _USUAL)
        elif type(line) is AnswerLine:
            self.answered(line, _USUAL)

    def take_apart(self, number: int, raw: bytes | memoryview, *, is_whole: bool) -> None:
        """Fold a line in that is not usual, or not even whole."""
        seal = hash(raw)
        for found in decode_line(join_halves(raw), number, self.state.path, is_whole=is_whole):
            if isinstance(found, Problem):
                self.state.problems.append(found)
                continue
            self.state.records += 1
            name = _line_name(found.value)
            if name is None or not self.state.is_copy(name, seal):
                self.record(found.value)

    def record(self, value: Any) -> None:
        """Fold a decoded line in: of the conversation, beside it, or nobody knows of what."""
        if is_spread(value):
            value = {**value, "type": "assistant"}
        kind = value.get("type") if type(value) is dict else None
        if kind in ("user", "assistant"):
            known = known_line(value, self.notes)
            if known is not None:
                line, extra = known
                self.said(line, extra) if isinstance(line, SaidLine) else self.answered(line, extra)
                return
        elif type(kind) is str and beside(value, self.state, self.notes):
            return
        self.notes.kept("unknown-record", _shape(value))
        self.state.add(unknown(value, self.state, self.notes))

    def said(self, line: SaidLine, extra: Record) -> None:
        """Fold a line of the human in, or one in the human's place."""
        chain, aside = self.chain(line), SAID_ASIDE.of(line)
        extra = extra | aside if extra else aside
        found = spoken(line, extra, self.state, self.notes)
        if found.prompt is not None:
            delivered(self.state, found.prompt)
            self.state.said = found.prompt
        place = self.add(line, _said_entry(line, extra, found), chain, is_stop=found.event == "info")
        for call_id, result in found.results:
            given(self.state, call_id, result, place, self.outputs)

    def answered(self, line: AnswerLine, extra: Record) -> None:
        """Fold a line of the model in."""
        state, chain, notes = self.state, self.chain(line), self.notes
        parts: tuple[Part, ...] = tuple([answer_part(block, notes) for block in line.message.content])
        if line.parent_uuid is None and self.is_repeated(line, parts):
            return
        usage = counted(line, state)
        if line.message.model != SYNTHETIC:
            state.answered.add(chain)
        place = self.add(line, _answer_entry(line, parts, usage, _answer_extra(line, extra, usage)), chain)
        if usage is not None:
            state.billed.add(chain)
            state.responses[usage.request] = (place, _told_output(usage), _content_hash(parts))
        self.pair(parts, line.message.content, place)
        retracted = extra.get("supersedesUuids")
        if type(retracted) is list:
            state.retracted.update(name for name in retracted if type(name) is str)

    def is_repeated(self, line: AnswerLine, parts: Iterable[Part]) -> bool:
        """Tell whether a root repeats an answer: a resume by 1.0 began so, and what follows hangs on the answer itself."""
        known = self.state.responses.get(request_of(line))
        if known is None or line.uuid is None or known[2] != _content_hash(parts):
            return False
        place, usage = known[0], counted(line, self.state)
        answer = self.state.nodes[place].entry
        if usage is not None and type(answer) is Message:
            self.state.put(place, msgspec.structs.replace(answer, usage=usage))
            self.state.responses[usage.request] = (place, _told_output(usage), known[2])
        self.state.places[line.uuid] = place
        return True

    def pair(self, parts: Iterable[Part], blocks: Iterable[Any], place: int) -> None:
        """Remember the calls of an answer, and take in what the API itself gave back to some of them."""
        for part, block in zip(parts, blocks, strict=True):
            if type(part) is ToolCall:
                called(self.state, part.id, place, self.outputs)
            elif type(part) is Context and type(block) is dict:
                given(self.state, block["tool_use_id"], served(block), place, self.outputs)

    def add(self, line: Chained, entry: Entry, chain: int, *, is_stop: bool = False) -> int:
        """Add a line of the conversation, and return its place."""
        is_chained = line.uuid is not None
        return self.state.add(Node(entry, line.parent_uuid, self.session, chain, is_chained, is_stop))

    def chain(self, line: Chained) -> int:
        """Return the chain that a line belongs to, and take note of what it says about the session."""
        state = self.state
        if line.session_id != self.session and line.session_id is not None:
            self.session = line.session_id
            state.sessions.pop(line.session_id, None)
            state.sessions[line.session_id] = None
        facts = _facts(line)
        if facts != state.setting:
            state.note(facts)
        if state.agent_id is None and (
            state.origin.agent_id or (line.is_sidechain and line.agent_id and not state.places)
        ):
            state.agent_id = line.agent_id or state.origin.agent_id
        if state.agent_id is not None or not line.is_sidechain:
            return MAIN
        above = state.chain_of(line.uuid, line.parent_uuid)
        return len(state.nodes) if above == MAIN else above


def _said_entry(line: SaidLine, extra: Record, found: Spoken) -> Entry:
    if line.tool_use_result is not None and len(found.results) != 1:
        extra = extra | {"toolUseResult": line.tool_use_result}
    if found.event is not None:
        return Event(line.uuid, found.event, line.timestamp, "live", found.text, extra=extra or None)
    return Message(
        line.uuid,
        "user",
        line.timestamp,
        "live",
        found.prompt,
        None,
        None,
        found.parts,
        True,  # noqa: FBT003 - by position: as often as there are lines
        None,
        extra or None,
    )


def _answer_entry(
    line: AnswerLine, parts: tuple[Part, ...], usage: Usage | None, extra: Record | None
) -> Entry:
    """Return the entry of a line of the model; an error that Claude Code put in its place is none of its words."""
    if line.is_api_error_message:
        text = "\n".join([part.text for part in parts if isinstance(part, Text)])
        return Event(line.uuid, "error", line.timestamp, "live", text, extra=extra)
    model = line.message.model
    return Message(
        line.uuid,
        "assistant",
        line.timestamp,
        "live",
        None,
        None if model == SYNTHETIC else model,
        usage,
        parts,
        True,  # noqa: FBT003 - by position: as often as there are lines
        line.message.id,
        extra,
    )


def _answer_extra(line: AnswerLine, extra: Record, usage: Usage | None) -> Record | None:
    """Return what else is recorded with an answer; what is said of a whole response, with its tokens."""
    kept = {**extra, **RESPONSE_ASIDE.of(line.message), **ANSWER_ASIDE.of(line)}
    if usage is not None and line.message.usage is not None:
        told = USAGE_ASIDE.of(line.message.usage).items()
        kept |= {name: value for name, value in told if not _says_nothing(value)}
    if line.message.model == SYNTHETIC:
        kept["model"] = SYNTHETIC
    if line.request_id is not None and (
        usage is not None or line.message.usage is None or line.is_api_error_message
    ):
        kept["requestId"] = line.request_id
    return kept or None


def _says_nothing(value: Any) -> bool:
    """Tell whether a service was the usual, counts are all zero, or one iteration says what the response says."""
    if type(value) is str:
        return value in _USUAL_SERVICE
    if type(value) is dict:
        return not any(value.values())
    return type(value) is list and not value[1:]


def _told_output(usage: Usage) -> int:
    return (usage.output or 0) + (usage.reasoning or 0)


def _content_hash(parts: Iterable[Part]) -> int:
    """Return what tells two answers apart, also where their words are not kept."""
    return hash(tuple([part.id if type(part) is ToolCall else getattr(part, "text", None) for part in parts]))


def _line_name(value: Any) -> str | None:
    """Return what only copies of a line share with it, besides their bytes."""
    if type(value) is not dict:
        return None
    name = value.get("uuid")
    return name if type(name) is str else whole_value([value.get("type"), value.get("timestamp")])


def _shape(record: Any) -> str:
    if type(record) is dict:
        return f"type {shown_value(record['type'], 40)}" if "type" in record else "an object without a type"
    return f"a {type(record).__name__} on a line of its own"


FORMAT = "claude-jsonl"
_TELLING = 64
"""How many lines are looked at to tell whose file it is."""
_NAMED = frozenset(("parentUuid", "isSidechain", "sessionId", "leafUuid", "messageId"))
_ASIDE = KNOWN | TITLES.keys() | {"system", "attachment", "queue-operation", "last-prompt"}


def read(source: Source, earlier: Sequence[Reading] = ()) -> Sequence[Reading] | Problem:
    """Read a transcript; given what an earlier call returned, only what was appended since."""
    before: Recorded | None = earlier[0].state if earlier else None
    file = open_lines(source.path, before.mark if before is not None else START, source.disk)
    if isinstance(file, Problem):
        return file
    with file:
        if file.mark == START or before is None or before.settled is None:
            if source.home is None and not _is_transcript(file, source.shown):
                return problem("not-a-session", "no transcript of Claude Code", source.shown)
            settled = State(source.shown, origin(source.path))
        else:
            settled = before.settled.copied()
        state = _read_on(settled, file, source.disk)
    chains = places_by_chain(state)
    if not chains:
        return problem("not-a-session", "nothing was said in it", source.shown)
    first = next(iter(chains))
    return tuple(
        _reading(source, file, Recorded(state, chain, chain == first, settled, file.mark, places))
        for chain, places in chains.items()
    )


def _read_on(settled: State, file: LineFile, disk: Disk) -> State:
    """Fold all whole lines into the state; return the one at the end of the file, where one may be still being written."""
    tail = replay(settled, file.pieces(), disk)
    if tail is None:
        return settled
    state = settled.copied()
    replay_torn(state, tail, disk)
    return state


def _is_transcript(file: LineFile, path: str) -> bool:
    """Tell whether one of the first lines is Claude Code's."""
    for number, raw, _ in file.pieces():
        if number > _TELLING:
            return False
        if any(
            isinstance(line, JsonLine) and _is_ours(line.value) for line in decode_line(raw, number, path)
        ):
            return True
    return False


def _is_ours(record: Any) -> bool:
    if type(record) is not dict or not _NAMED & record.keys():
        return False
    message = record.get("message")
    if record.get("type") in ("user", "assistant"):
        return type(message) is dict and type(message.get("content")) in (str, list)
    kind = record.get("type")
    return type(kind) is str and kind in _ASIDE


def _reading(source: Source, file: LineFile, found: Recorded) -> Reading:
    return Reading(
        source, FORMAT, found.agent_id or found.state.native_id, file.size, file.modified_at, found, ()
    )

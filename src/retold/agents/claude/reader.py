"""Reads a transcript: recognises it and folds its lines into a state."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from hashlib import blake2b
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from retold.agents.bookmarks import find_places
from retold.agents.claude.bookmarks import FORMAT, is_place, note_place
from retold.agents.claude.discovery import origin_of
from retold.agents.claude.messages import LineContent, normalise_answer_block, normalise_user_line
from retold.agents.claude.raw import (
    ANSWER_EXTRA,
    DECODER,
    RESPONSE_EXTRA,
    USAGE_EXTRA,
    USER_EXTRA,
    AnswerLine,
    ConversationLine,
    Record,
    UsageRecord,
    UserLine,
    convert_line,
    is_spread_message,
    join_surrogates,
)
from retold.agents.claude.session import BookmarkPlace, Transcript, places_by_chain
from retold.agents.claude.side_records import STATE_TYPES, TITLE_FIELDS, fold_side_record, make_unknown_node
from retold.agents.claude.state import MAIN, Node, State, remove_from_queue
from retold.agents.claude.tool_calls import pair_result, register_call
from retold.agents.claude.tool_results import OutputFiles, normalise_server_result
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem, problem
from retold.model.serialization import deep_repr, short_repr
from retold.model.session import Context, Entry, Event, Message, Part, Text, ToolCall, Usage
from retold.reading.diagnostics import ReaderNotes
from retold.reading.disk import Disk
from retold.reading.jsonl import FILE_START, JsonLine, LineFile, Piece, decode_line, open_lines

SYNTHETIC = "<synthetic>"
"""The model of messages that Claude Code made up itself."""


def claim_usage(line: AnswerLine, state: State) -> Usage | None:
    """Return the tokens of a response, unless another line of it records more output; a line with less loses its tokens.

    Output grows while a response is streamed, everything else stays: the largest count was written last.
    """
    record = line.message.usage
    if record is None or line.message.model == SYNTHETIC or line.is_api_error_message:
        return None
    request = request_key(line)
    known = state.responses.get(request)
    if known is not None:
        place, output, _ = known
        if output > (record.output_tokens or 0):
            return None
        bearer = state.nodes[place].entry
        if isinstance(bearer, Message):
            state.replace_entry(place, replace(bearer, usage=None))
    return make_usage(record, request)


def request_key(line: AnswerLine) -> str:
    """Return the key of a response, equal on all its lines in every file: copies by 1.0 lack the `requestId`."""
    return line.message.id or line.request_id or f"{line.session_id}/{line.uuid}"


def make_usage(record: UsageRecord, request: str) -> Usage:
    """Return the recorded tokens: the counts do not overlap, and `output_tokens` includes the thinking."""
    read, written = record.cache_read_input_tokens, record.cache_creation_input_tokens
    given = _sum(record.input_tokens, read, written)
    output, thought = record.output_tokens, _thinking_tokens(record)
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
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _thinking_tokens(record: UsageRecord) -> int | None:
    """Return the part of the output that was thinking, which newer versions record."""
    match record.output_tokens_details:
        case {"thinking_tokens": int(count)} if 0 <= count <= (record.output_tokens or 0):
            return count
        case _:
            return None


_get_facts = attrgetter("cwd", "version", "git_branch", "user_type", "entrypoint", "slug")
_NO_EXTRA: Record = {}
"""The extra fields of a line that was checked."""
_COMMON_SERVICES = ("", "standard", "not_available")
"""Services of nearly all responses, which are not kept."""


def replay(state: State, pieces: Iterable[Piece], disk: Disk) -> Piece | None:
    """Fold lines into a state, changing it; return an unfinished last line, which is not folded."""
    fold = _Fold(state, disk)
    torn = None
    for piece in pieces:
        if piece[2]:
            fold.fold_line(piece[0], piece[1])
        else:
            torn = piece
    state.opaque += fold.notes.opaque
    return torn


def replay_unfinished(state: State, piece: Piece, disk: Disk) -> None:
    """Fold an unfinished line: it may still be complete JSON."""
    fold = _Fold(state, disk)
    fold.fold_line(piece[0], piece[1], is_whole=False)
    state.opaque += fold.notes.opaque


class _Fold:
    """A state while lines are folded into it."""

    def __init__(self, state: State, disk: Disk) -> None:
        self.state = state
        self.notes = ReaderNotes(state.path)
        self.notes.problems = state.problems
        self.outputs = OutputFiles(state.origin.session_folder, self.notes, disk)
        self.session = next(reversed(state.sessions), None)

    def fold_line(self, number: int, raw: bytes | memoryview, *, is_whole: bool = True) -> None:
        """Fold a line: nearly all are checked as a whole, the others are taken apart."""
        self.notes.place = (number, 0)
        try:
            line = DECODER.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            line = None
        if line is None or line.timestamp is None or line.timestamp.tzinfo is not UTC:
            self.fold_unusual_line(number, raw, is_whole=is_whole)
            return
        self.state.records += 1
        if self.state.is_copy(line.uuid or f"{type(line).__name__} {line.timestamp}", hash(raw)):
            return
        if type(line) is UserLine:
            self.fold_user(line, _NO_EXTRA)
        elif type(line) is AnswerLine:
            self.fold_answer(line, _NO_EXTRA)

    def fold_unusual_line(self, number: int, raw: bytes | memoryview, *, is_whole: bool) -> None:
        """Fold a line that is unusual or damaged."""
        # A bookmark keeps it, so it must not differ from process to process.
        seal = int.from_bytes(blake2b(raw, digest_size=8).digest())
        for found in decode_line(join_surrogates(raw), number, self.state.path, is_whole=is_whole):
            if isinstance(found, Problem):
                self.state.problems.append(found)
                continue
            self.state.records += 1
            name = _line_id(found.value)
            if name is None or not self.state.is_copy(name, seal):
                self.fold_record(found.value)

    def fold_record(self, value: Any) -> None:
        """Fold a decoded record: of the conversation, a side record, or unknown."""
        if is_spread_message(value):
            value = {**value, "type": "assistant"}
        kind = value.get("type") if type(value) is dict else None
        if kind in ("user", "assistant"):
            known = convert_line(value, self.notes)
            if known is not None:
                line, extra = known
                self.fold_user(line, extra) if isinstance(line, UserLine) else self.fold_answer(line, extra)
                return
        elif type(kind) is str and fold_side_record(value, self.state, self.notes):
            return
        self.notes.add_opaque("unknown-record", _describe_shape(value))
        self.state.add(make_unknown_node(value, self.state, self.notes))

    def fold_user(self, line: UserLine, extra: Record) -> None:
        """Fold a user's line."""
        chain, aside = self.find_chain(line), USER_EXTRA.of(line)
        extra = extra | aside if extra else aside
        found = normalise_user_line(line, extra, self.state, self.notes)
        if found.prompt is not None:
            remove_from_queue(self.state, found.prompt)
            self.state.last_prompt = found.prompt
        place = self.add_entry(line, _user_entry(line, extra, found), chain, is_stop=found.event == "info")
        for call_id, result in found.results:
            pair_result(self.state, call_id, result, place, self.outputs)

    def fold_answer(self, line: AnswerLine, extra: Record) -> None:
        """Fold a line of the model."""
        state, chain, notes = self.state, self.find_chain(line), self.notes
        parts: tuple[Part, ...] = tuple(
            [normalise_answer_block(block, notes) for block in line.message.content]
        )
        if line.parent_uuid is None and self.is_repeated(line, parts):
            return
        usage = claim_usage(line, state)
        if line.message.model != SYNTHETIC:
            state.answered_chains.add(chain)
        place = self.add_entry(
            line, _answer_entry(line, parts, usage, _answer_extra(line, extra, usage)), chain
        )
        if usage is not None:
            state.billed_chains.add(chain)
            state.responses[usage.request] = (place, _output_with_thinking(usage), _content_hash(parts))
        self.pair_calls(parts, line.message.content, place)
        retracted = extra.get("supersedesUuids")
        if type(retracted) is list:
            state.retracted_ids.update(name for name in retracted if type(name) is str)

    def is_repeated(self, line: AnswerLine, parts: Iterable[Part]) -> bool:
        """Return whether a root repeats an answer: a resume by 1.0 began so, and later lines hang on the answer itself."""
        response = self.state.responses.get(request_key(line))
        if response is None or line.uuid is None or response[2] != _content_hash(parts):
            return False
        place, usage = response[0], claim_usage(line, self.state)
        answer = self.state.nodes[place].entry
        if usage is not None and type(answer) is Message:
            self.state.replace_entry(place, replace(answer, usage=usage))
            self.state.responses[usage.request] = (place, _output_with_thinking(usage), response[2])
        self.state.places[line.uuid] = place
        return True

    def pair_calls(self, parts: Iterable[Part], blocks: Iterable[Any], place: int) -> None:
        """Register the calls of an answer, and pair those that the API ran with their results."""
        for part, block in zip(parts, blocks, strict=True):
            if type(part) is ToolCall:
                register_call(self.state, part.id, place, self.outputs)
            elif type(part) is Context and type(block) is dict:
                pair_result(
                    self.state, block["tool_use_id"], normalise_server_result(block), place, self.outputs
                )

    def add_entry(self, line: ConversationLine, entry: Entry, chain: int, *, is_stop: bool = False) -> int:
        """Add a line of the conversation, and return its place."""
        is_chained = line.uuid is not None
        return self.state.add(Node(entry, line.parent_uuid, self.session, chain, is_chained, is_stop))

    def find_chain(self, line: ConversationLine) -> int:
        """Return the chain of a line, and note the facts about the session."""
        state = self.state
        if line.session_id != self.session and line.session_id is not None:
            self.session = line.session_id
            state.sessions.pop(line.session_id, None)
            state.sessions[line.session_id] = None
        facts = _get_facts(line)
        if facts != state.last_facts:
            state.note_facts(facts)
        if state.agent_id is None and (
            state.origin.agent_id or (line.is_sidechain and line.agent_id and not state.places)
        ):
            state.agent_id = line.agent_id or state.origin.agent_id
        if state.agent_id is not None or not line.is_sidechain:
            return MAIN
        above = state.chain_of(line.uuid, line.parent_uuid)
        return len(state.nodes) if above == MAIN else above


def _user_entry(line: UserLine, extra: Record, content: LineContent) -> Entry:
    if line.tool_use_result is not None and len(content.results) != 1:
        extra = extra | {"toolUseResult": line.tool_use_result}
    if content.event is not None:
        return Event(line.uuid, content.event, line.timestamp, "live", content.text, extra=extra or None)
    return Message(
        line.uuid,
        "user",
        line.timestamp,
        "live",
        content.prompt,
        None,
        None,
        content.parts,
        True,  # noqa: FBT003 - by position: as often as there are lines
        None,
        extra or None,
    )


def _answer_entry(
    line: AnswerLine, parts: tuple[Part, ...], usage: Usage | None, extra: Record | None
) -> Entry:
    """Return the entry of a line of the model; an error of Claude Code in its place is an event."""
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
    """Return the other fields of an answer; those about the whole response only with its tokens."""
    fields = {**extra, **RESPONSE_EXTRA.of(line.message), **ANSWER_EXTRA.of(line)}
    if usage is not None and line.message.usage is not None:
        usage_fields = USAGE_EXTRA.of(line.message.usage).items()
        fields |= {name: value for name, value in usage_fields if not _is_uninformative(value)}
    if line.message.model == SYNTHETIC:
        fields["model"] = SYNTHETIC
    if line.request_id is not None and (
        usage is not None or line.message.usage is None or line.is_api_error_message
    ):
        fields["requestId"] = line.request_id
    return fields or None


def _is_uninformative(value: Any) -> bool:
    """Return whether a service is common, all counts are zero, or there is only one iteration."""
    if type(value) is str:
        return value in _COMMON_SERVICES
    if type(value) is dict:
        return not any(value.values())
    return type(value) is list and not value[1:]


def _output_with_thinking(usage: Usage) -> int:
    return (usage.output or 0) + (usage.reasoning or 0)


def _content_hash(parts: Iterable[Part]) -> int:
    """Return a hash that distinguishes answers, without keeping their words."""
    return hash(tuple([part.id if type(part) is ToolCall else getattr(part, "text", None) for part in parts]))


def _line_id(value: Any) -> str | None:
    """Return an id of a line that only its copies share."""
    if type(value) is not dict:
        return None
    name = value.get("uuid")
    return name if type(name) is str else deep_repr([value.get("type"), value.get("timestamp")])


def _describe_shape(record: Any) -> str:
    if type(record) is dict:
        return f"type {short_repr(record['type'], 40)}" if "type" in record else "an object without a type"
    return f"a {type(record).__name__} on a line of its own"


_PROBE_LINES = 64
"""How many lines are probed to recognise a transcript."""
_MARKER_KEYS = frozenset(("parentUuid", "isSidechain", "sessionId", "leafUuid", "messageId"))
_SIDE_TYPES = STATE_TYPES | TITLE_FIELDS.keys() | {"system", "attachment", "queue-operation", "last-prompt"}


def read(source: Source, earlier: Sequence[Reading] = ()) -> Sequence[Reading] | Problem:
    """Read a transcript; given the reading of its beginning, read only what follows."""
    before: Transcript | None = earlier[0].state if earlier else None
    file = open_lines(source.path, before.mark if before is not None else FILE_START, source.disk)
    if isinstance(file, Problem):
        return file
    with file:
        is_asked = before is None and source.home is None
        if is_asked and not _is_transcript(file, source.display_path):
            return problem("not-a-session", "no transcript of Claude Code", source.display_path)
        state = State(source.display_path, origin_of(source.path)) if before is None else before.state
        bookmark_places = tuple(_fold_lines(state, file, source))
    chains = places_by_chain(state)
    if not chains:
        is_understood = state.records and not any(one.severity == "loss" for one in state.problems)
        code = "nothing-said" if is_understood and not state.opaque else "not-a-session"
        return problem(code, "nothing was said in it", source.display_path)
    if before is not None:
        places = chains[MAIN][1:] if MAIN in chains else ()
        whole = replace(before, places=places, bookmark_places=bookmark_places)
        return (_make_reading(source, file, whole),)
    first = next(iter(chains))
    return tuple(
        _make_reading(
            source,
            file,
            Transcript(state, chain, chain == first, places, bookmark_places=bookmark_places),
        )
        for chain, places in chains.items()
    )


def _fold_lines(state: State, file: LineFile, source: Source) -> Iterator[BookmarkPlace]:
    """Fold all lines into a state; yield the places for bookmarks."""
    if source.is_growing:
        for end in find_places(file.read_part, file.mark.offset, file.size, is_place):
            replay(state, file.pieces(end), source.disk)
            yield note_place(state, file.mark)
    torn = replay(state, file.pieces(), source.disk)
    if torn is not None:
        replay_unfinished(state, torn, source.disk)


def _is_transcript(file: LineFile, path: str) -> bool:
    """Return whether one of the first lines is Claude Code's."""
    for number, raw, _ in file.pieces():
        if number > _PROBE_LINES:
            return False
        if any(
            isinstance(line, JsonLine) and _is_claude_line(line.value)
            for line in decode_line(raw, number, path)
        ):
            return True
    return False


def _is_claude_line(record: Any) -> bool:
    if type(record) is not dict or not _MARKER_KEYS & record.keys():
        return False
    message = record.get("message")
    if record.get("type") in ("user", "assistant"):
        return type(message) is dict and type(message.get("content")) in (str, list)
    kind = record.get("type")
    return type(kind) is str and kind in _SIDE_TYPES


def _make_reading(source: Source, file: LineFile, transcript: Transcript) -> Reading:
    return Reading(
        source,
        FORMAT,
        transcript.agent_id or transcript.state.native_id,
        file.size,
        file.modified_at,
        transcript,
        (),
    )

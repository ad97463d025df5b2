"""Normalises records: makes the entries of the full and of the active timeline."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from retold.agents.gemini.prompt_text import (
    ACKNOWLEDGEMENTS,
    as_task,
    normalise_other_part,
    prompt_of,
    split_user_content,
)
from retold.agents.gemini.raw import (
    ANSWER_KEYS,
    ENVIRONMENT_ID,
    NOTICES,
    RESPONSE_SUFFIX,
    RESULTS_SUFFIX,
    THOUGHT_KEYS,
    TOKEN_KEYS,
    USER_KEYS,
    AnswerRecord,
    ErrorRecord,
    InfoRecord,
    MessageRecord,
    Record,
    TokensRecord,
    UserRecord,
    WarningRecord,
    has_utc_times,
    looks_like_message,
    plain_text,
    text_parts,
)
from retold.agents.gemini.state import (
    CleanDocument,
    Key,
    Notes,
    RecordContext,
    State,
    Version,
    active_records,
    merge_versions,
    resolve_fates,
    sorted_json,
)
from retold.agents.gemini.tool_calls import (
    STARTS_AGENT,
    LocatedEntry,
    have_ids,
    make_call,
    merge_calls,
    normalise_calls,
    normalise_checked_call,
    pair_results,
)
from retold.agents.gemini.tool_results import NOTHING
from retold.model.session import (
    Context,
    Entry,
    Event,
    EventKind,
    Fate,
    Message,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
    Usage,
)

_SUMMED = ("input", "output", "thoughts", "tool")


def normalise_usage(tokens: Any, request: str, notes: Notes) -> Usage | None:
    """Return the tokens of one response: `input` includes cached tokens, `output` excludes thoughts."""
    if type(tokens) is not dict:
        if tokens is not None:
            notes.add_opaque("unexpected-shape", "tokens is no object")
        return None
    try:
        return make_usage(request, msgspec.convert(tokens, TokensRecord), notes)
    except msgspec.ValidationError:
        return _partial_usage(tokens, request, notes)


def is_token_count(tokens: Any) -> bool:
    """Return whether a count holds only known keys with whole numbers."""
    return type(tokens) is dict and all(
        key in TOKEN_KEYS and type(count) in (int, type(None)) for key, count in tokens.items()
    )


def make_usage(request: str, tokens: TokensRecord, notes: Notes) -> Usage:
    """Return the usage of a complete count. The API caches by itself and bills no cache writes, so there are none."""
    check_total(tokens.total, tokens.input + tokens.output + tokens.thoughts + tokens.tool, notes)
    return Usage(
        request, tokens.input, tokens.cached, 0, tokens.output, tokens.thoughts, tokens.tool, tokens.total
    )


def check_total(total: int, total_of_parts: int, notes: Notes) -> None:
    """Add a problem if a recorded total is not the sum of its parts."""
    if total != total_of_parts:
        notes.add("token-total-mismatch", f"{total} recorded, {total_of_parts} counted")


def _partial_usage(tokens: Record, request: str, notes: Notes) -> Usage | None:
    """Return the recorded part of an incomplete count; missing numbers stay unknown."""
    if not is_token_count(tokens):
        notes.add_opaque("unexpected-shape", "tokens that are no known whole numbers")
    counts = {key: tokens[key] for key in TOKEN_KEYS if type(tokens.get(key)) is int}
    if not counts:
        return None
    if {"input", "output", "total"} <= counts.keys():
        check_total(counts["total"], sum(counts.get(key, 0) for key in _SUMMED), notes)
    return Usage(
        request,
        counts.get("input"),
        counts.get("cached"),
        0,
        counts.get("output"),
        counts.get("thoughts"),
        counts.get("tool"),
        counts.get("total"),
    )


def normalise_entry(
    record: Any, fate: Fate, context: RecordContext, versions: tuple[Version, ...] = ()
) -> Entry:
    """Return the entry of a record; `versions` are all its versions if it has several."""
    if type(record) is not dict:
        context.notes.add_opaque("unexpected-shape", f"a message that is a {type(record).__name__}")
        return Event(None, "notice", None, fate, "", Opaque(record))
    kind = record.get("type")
    if kind == "gemini":
        return normalise_answer(record, fate, context, versions)
    if kind == "user":
        return normalise_prompt(record, fate, context)
    if kind in NOTICES:
        return normalise_notice(record, fate, context)
    context.notes.add_opaque("unknown-type", f"{kind!r:.60}")
    at = context.notes.parse_time(record.get("timestamp"))
    return Message(_record_id(record), "system", at, fate, None, None, None, (Opaque(record),))


def normalise_answer(
    record: Record, fate: Fate, context: RecordContext, versions: tuple[Version, ...] = ()
) -> Message:
    """Return the message of a record of the model."""
    if len(versions) <= 1:
        try:
            usual = msgspec.convert(record, AnswerRecord)
        except (msgspec.ValidationError, RecursionError):
            pass  # not a usual record
        else:
            if has_utc_times(usual):
                return normalise_checked_answer(usual, fate, context)
    return normalise_unusual_answer(record, fate, context, versions)


def normalise_checked_answer(record: AnswerRecord, fate: Fate, context: RecordContext) -> Message:
    """Return the message of a record whose fields were all checked."""
    model, tokens = record.model, record.tokens
    parts: list[Part] = []
    if record.thoughts:
        parts = [
            Thinking(thought.subject, thought.description, thought.timestamp) for thought in record.thoughts
        ]
    if record.content:
        parts.append(_text_part(record.content, model))
    calls = record.tool_calls
    if calls:
        parts += [normalise_checked_call(call, record.timestamp, context) for call in calls]
    if tokens is None or (calls and calls[0].timestamp != calls[-1].timestamp):
        context.notes.may_lack_tokens = True
    return Message(
        record.id,
        "assistant",
        record.timestamp,
        fate,
        None,
        model,
        None if tokens is None else make_usage(f"{context.native_id}/{record.id}", tokens, context.notes),
        tuple(parts),
    )


def normalise_unusual_answer(
    record: Record, fate: Fate, context: RecordContext, versions: tuple[Version, ...] = ()
) -> Message:
    """Return the message of a record that is unusual or has several versions, checking each field."""
    field, notes = record.get, context.notes
    message_id, model, content = field("id"), field("model"), field("content")
    thoughts, tokens, value = field("thoughts"), field("tokens"), field("toolCalls")
    at = notes.parse_time(field("timestamp"))
    notes.may_lack_tokens = True
    parts: list[Part] = _normalise_thoughts(thoughts, notes) if thoughts else []
    recorded = [version["toolCalls"] for version, _ in versions if version.get("toolCalls")]
    if len(recorded) > 1 and all(map(have_ids, recorded)):
        calls = merge_calls(normalise_calls(value, at, context) for value in recorded)
    else:
        calls = normalise_calls(value, at, context) if value else []
    if type(content) is str:
        if content:
            parts.append(_text_part(content, model))
    elif content is not None:
        parts += _normalise_content(content, parts, calls, context, model)
    parts += calls
    usage = None if tokens is None else normalise_usage(tokens, f"{context.native_id}/{message_id}", notes)
    if tokens is not None and not is_token_count(tokens):
        parts.append(Opaque({"tokens": tokens}))
    if not record.keys() <= ANSWER_KEYS:
        parts.append(_unknown_keys(record, notes, ANSWER_KEYS))
    return Message(
        message_id if type(message_id) is str else None,
        "assistant",
        at,
        fate,
        None,
        model if type(model) is str else None,
        usage,
        tuple(parts),
    )


def normalise_prompt(record: Record, fate: Fate, context: RecordContext) -> Entry:
    """Return the entry of a user record: a prompt, or a text that the CLI wrote in the user's place."""
    at = context.notes.parse_time(record.get("timestamp"))
    entry = make_user_entry(
        _record_id(record), at, record.get("content"), record.get("displayContent"), fate, context
    )
    if isinstance(entry, Event) or record.keys() <= USER_KEYS:
        return entry
    return replace(entry, parts=(*entry.parts, _unknown_keys(record, context.notes, USER_KEYS)))


def make_user_entry(  # noqa: PLR0913 - the fields of a user record
    message_id: str | None,
    at: datetime | None,
    content: Any,
    display_content: Any,
    fate: Fate,
    context: RecordContext,
) -> Entry:
    """Return the entry of a user record from its fields."""
    if message_id == ENVIRONMENT_ID:
        return Event(None, "notice", at, fate, plain_text(content))
    parts = split_user_content(content, context.notes)
    prompt = prompt_of(parts)
    if display_content:
        prompt = prompt_of(split_user_content(display_content, context.notes)) or prompt
    if context.is_subagent:
        parts, prompt = as_task(parts), None
    return Message(message_id, "user", at, fate, prompt, None, None, parts)


def normalise_checked_entry(record: MessageRecord, context: RecordContext) -> Entry:
    """Return the entry of a record whose fields were all checked; such records are live."""
    if type(record) is AnswerRecord:
        return normalise_checked_answer(record, "live", context)
    at = record.timestamp
    if type(record) is UserRecord:
        return make_user_entry(record.id, at, record.content, record.display_content, "live", context)
    kind: EventKind = _NOTICE_KINDS[type(record)]
    text = record.content
    return Event(record.id, kind if text or kind != "info" else "compaction", at, "live", text)


_NOTICE_KINDS: dict[type, EventKind] = {InfoRecord: "info", WarningRecord: "warning", ErrorRecord: "error"}


def normalise_notice(record: Record, fate: Fate, context: RecordContext) -> Event:
    """Return the event of a notice of the CLI; an empty `info` marks a compaction."""
    content = record.get("content")
    text = plain_text(content)
    at = context.notes.parse_time(record.get("timestamp"))
    kind: EventKind = "compaction" if record["type"] == "info" and content == "" else record["type"]
    rest = {key: value for key, value in record.items() if key not in ("id", "timestamp", "type", "content")}
    if not all(
        type(part) is str or (type(part) is dict and part.keys() == {"text"}) for part in text_parts(content)
    ):
        rest["content"] = content  # 0.44 and later: a notice may hold data
    elif rest:
        context.notes.add_opaque("unknown-part", "unknown keys in a notice: " + ", ".join(sorted(rest)))
    return Event(_record_id(record), kind, at, fate, text, Opaque(rest) if rest else None)


def _normalise_thoughts(thoughts: Any, notes: Notes) -> list[Part]:
    if type(thoughts) is not list:
        notes.add_opaque("unexpected-shape", "thoughts is no list")
        return [Opaque(thoughts)]
    return [part for thought in thoughts for part in _normalise_thought(thought, notes)]


def _normalise_thought(thought: Any, notes: Notes) -> Iterator[Part]:
    if type(thought) is dict:
        subject, text = thought.get("subject"), thought.get("description")
        if type(text) is str and (subject is None or type(subject) is str):
            yield Thinking(subject, text, notes.parse_time(thought.get("timestamp")))
            if not thought.keys() <= THOUGHT_KEYS:
                yield _unknown_keys(thought, notes, THOUGHT_KEYS)
            return
    notes.add_opaque("unexpected-shape", "a thought without a description")
    yield Opaque(thought)


def _text_part(text: str, model: Any) -> Part:
    """Return a text of the model as a part; nobody said the words with which the CLI lets its model accept a context."""
    return Text(text) if model or text not in ACKNOWLEDGEMENTS else Context("acknowledgement", text)


def _normalise_content(
    content: Any, thinking: list[Part], calls: list[ToolCall | Opaque], context: RecordContext, model: Any
) -> list[Part]:
    """Return the parts of content in list form, without repetitions of thoughts and tool calls."""
    rendered = [f"**{part.subject or ''}** {part.text}" for part in thinking if isinstance(part, Thinking)]
    called = {call.id for call in calls if isinstance(call, ToolCall)}
    parts: list[Part] = []
    for item in text_parts(content):
        if type(item) is str:
            parts.append(_text_part(item, model))
        elif type(item) is dict and type(item.get("functionCall")) is dict:
            parts.extend(_normalise_function_call(item, called, context.notes))
        elif type(item) is dict and item.get("thought") is True and item.get("text") in rendered:
            continue
        elif type(item) is dict and item.keys() == {"text"} and type(item["text"]) is str:
            if item["text"]:
                parts.append(_text_part(item["text"], model))
        else:
            parts.extend(normalise_other_part(item, context.notes))
    return parts


def _normalise_function_call(item: Record, called: set[str], notes: Notes) -> list[Part]:
    """Return a call that occurs in content only; its result follows in a user record."""
    call = item["functionCall"]
    call_id, name, arguments = call.get("id"), call.get("name"), call.get("args")
    if type(call_id) is str and call_id in called:
        return []
    if type(name) is not str:
        return [Opaque(item)]
    signature = item.get("thoughtSignature")
    return [
        make_call(
            call_id if type(call_id) is str else notes.make_call_id(name),
            name,
            arguments if type(arguments) is dict else {},
            NOTHING,
            "unknown",
            signature=signature if type(signature) is str else None,
        )
    ]


def _unknown_keys(record: Record, notes: Notes, known: frozenset[str]) -> Opaque:
    unknown = {key: value for key, value in record.items() if key not in known}
    notes.add_opaque("unknown-part", "unknown keys in a message: " + ", ".join(sorted(unknown)))
    return Opaque(unknown)


def _record_id(record: Record) -> str | None:
    message_id = record.get("id")
    return message_id if type(message_id) is str else None


def have_same_arguments(versions: Sequence[Version]) -> bool:
    """Return whether all versions have the same arguments for each call."""
    arguments = {pair for record, _ in versions for pair in _call_arguments(record)}
    return len({call for call, _ in arguments}) == len(arguments)


def select_other_arguments(shown: Iterable[Part], versions: Sequence[Version]) -> Iterator[Version]:
    """Yield the versions with arguments of a call other than those shown, each of them once."""
    known = {(part.id, sorted_json(part.arguments)) for part in shown if isinstance(part, ToolCall)}
    for version in versions:
        arguments = set(_call_arguments(version[0]))
        if not arguments <= known:
            yield version
            known |= arguments


def _call_arguments(record: Record) -> Iterator[tuple[str, str]]:
    """Yield the id of each call with arguments, and the arguments as text."""
    calls = record.get("toolCalls")
    for call in calls if type(calls) is list else ():
        arguments = call.get("args") if type(call) is dict and type(call.get("id")) is str else None
        if type(arguments) is dict and arguments:
            yield call["id"], sorted_json(arguments)


def mark_tasks(placed: Sequence[LocatedEntry]) -> list[LocatedEntry]:
    """Return the entries with the tasks of subagents marked: nobody typed them."""
    marked = list(placed)
    candidate: tuple[int, Message, bool] | None = None
    is_going_on = False
    for index, (entry, _, _) in enumerate(placed):
        if type(entry) is not Message:
            continue
        if entry.prompt is not None:
            candidate = (index, entry, is_going_on)
        elif candidate is not None and entry.role == "assistant":
            place, question, within_turn = candidate
            if any(_starts_task(part, question.prompt or "", within_turn) for part in entry.parts):
                task = replace(question, prompt=None, parts=as_task(question.parts))
                marked[place] = placed[place]._replace(entry=task)
                candidate = None
        is_going_on = entry.role == "user" or any(type(part) is ToolCall for part in entry.parts)
    return marked


def _starts_task(part: Part, text: str, is_going_on: bool) -> bool:  # noqa: FBT001 - what is known of the turn
    """Return whether a call was started with this text: an argument of it stands in the text, wrapped in a tag or within a turn."""
    if type(part) is not ToolCall or part.name not in STARTS_AGENT:
        return False
    values = [
        value.strip() for value in part.arguments.values() if type(value) is str and value.strip() in text
    ]
    return any(value and (is_going_on or _is_wrapped(value, text)) for value in values)


def _is_wrapped(value: str, text: str) -> bool:
    return re.search(rf"<(\w+)>\s*{re.escape(value)}\s*</\1>", text) is not None


def make_full_timeline(state: State | CleanDocument, context: RecordContext) -> tuple[Entry, ...]:
    """Return everything ever recorded, each entry once, in order of first appearance."""
    notes = context.notes
    if isinstance(state, State):
        placed = list(_state_entries(state, context))
    else:
        entries = []
        for index, record in enumerate(state.record.messages):
            notes.place = (0, index)
            entries.append(normalise_checked_entry(record, context))
        if not notes.has_agents and not notes.has_results:
            return tuple(entries)
        placed = [LocatedEntry(entry, (0, index)) for index, entry in enumerate(entries)]
    return pair_results(mark_tasks(placed) if notes.has_agents else placed, notes)


def _state_entries(state: State, context: RecordContext) -> Iterator[LocatedEntry]:
    notes = context.notes
    for key, fate in resolve_fates(state).items():
        versions = state.versions[key]
        record, place = versions[0]
        notes.place = place
        if type(key) is not str and state.document_messages is None and not looks_like_message(record):
            # The replay has reported it.
            yield LocatedEntry(Event(None, "notice", None, fate, "", Opaque(record)), place)
            continue
        entry: Entry | None = None
        if len(versions) > 1:
            record, others = merge_versions(versions)
            yield from _superseded_entries(others, context)
            if not have_same_arguments(versions):
                entry = normalise_entry(record, fate, context, versions)
                yield from _superseded_entries(_select_unshown_versions(entry, versions, others), context)
        entry = normalise_entry(record, fate, context, versions) if entry is None else entry
        yield LocatedEntry(entry, place, may_go=_is_repeated_result(key))


def _select_unshown_versions(
    shown: Entry, versions: Sequence[Version], seen: Sequence[Version]
) -> Iterator[Version]:
    """Yield the versions whose arguments of a call neither the message nor a version in `seen` shows."""
    parts = shown.parts if isinstance(shown, Message) else ()
    known = {id(version) for version in seen}
    yield from (one for one in select_other_arguments(parts, [*seen, *versions]) if id(one) not in known)


def _is_repeated_result(key: Key) -> bool:
    """Return whether a key is that of a repeated tool result: a resume of the CLI or of retold adds a suffix to the answer's id."""
    return type(key) is str and key.endswith((RESPONSE_SUFFIX, RESULTS_SUFFIX))


def _superseded_entries(versions: Iterable[Version], context: RecordContext) -> Iterator[LocatedEntry]:
    """Yield the entries of superseded versions, without their tokens, which the shown version counts."""
    for record, place in versions:
        entry = normalise_entry(record, "superseded", context)
        entry = replace(entry, usage=None) if isinstance(entry, Message) else entry
        yield LocatedEntry(entry, place, may_go=True)


def make_active_timeline(state: State, context: RecordContext) -> tuple[Entry, ...]:
    """Return exactly what the CLI's loader returns: every record, in its order, without a filter."""
    placed = []
    for record in active_records(state):
        entry = normalise_entry(record, "live", context)
        if type(record) is dict and record.get("id") == ENVIRONMENT_ID:
            entry = replace(entry, id=ENVIRONMENT_ID)
        placed.append(LocatedEntry(entry))
    return pair_results(placed, context.notes)

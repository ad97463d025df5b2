"""Records to entries: raw in, model out."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from retold.agents.gemini.context import Notes, Setting
from retold.agents.gemini.prompt_text import ACKNOWLEDGEMENTS, as_task, prompt_of, said_by_user, unlike_text
from retold.agents.gemini.raw import (
    ANSWER_KEYS,
    ENVIRONMENT_ID,
    NOTICES,
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
    plain_text,
    text_parts,
)
from retold.agents.gemini.state import Version
from retold.agents.gemini.tool_calls import are_identified, built, merged_calls, tool_calls, usual_call
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
)
from retold.model.usage import Usage

_SUMMED = ("input", "output", "thoughts", "tool")


def usage(tokens: Any, request: str, notes: Notes) -> Usage | None:
    """Return the tokens of one response: `input` includes what was cached, `output` excludes thoughts."""
    if type(tokens) is not dict:
        if tokens is not None:
            notes.kept("unexpected-shape", "tokens is no object")
        return None
    try:
        return counted(request, msgspec.convert(tokens, TokensRecord), notes)
    except msgspec.ValidationError:
        return _partial(tokens, request, notes)


def is_counted(tokens: Any) -> bool:
    """Tell whether a count holds nothing but known whole numbers."""
    return type(tokens) is dict and all(
        key in TOKEN_KEYS and type(count) in (int, type(None)) for key, count in tokens.items()
    )


def counted(request: str, tokens: TokensRecord, notes: Notes) -> Usage:
    """Return a complete count. The API caches by itself and bills no write, so there were none."""
    reconcile(tokens.total, tokens.input + tokens.output + tokens.thoughts + tokens.tool, notes)
    return Usage(
        request, tokens.input, tokens.cached, 0, tokens.output, tokens.thoughts, tokens.tool, tokens.total
    )


def reconcile(total: int, counted: int, notes: Notes) -> None:
    """Write down where a recorded total is not the sum of its parts."""
    if total != counted:
        notes.add("token-total-mismatch", f"{total} recorded, {counted} counted")


def _partial(tokens: Record, request: str, notes: Notes) -> Usage | None:
    """Return what is recorded of an incomplete count; what is missing stays unknown."""
    if not is_counted(tokens):
        notes.kept("unexpected-shape", "tokens that are no known whole numbers")
    counts = {key: tokens[key] for key in TOKEN_KEYS if type(tokens.get(key)) is int}
    if not counts:
        return None
    if {"input", "output", "total"} <= counts.keys():
        reconcile(counts["total"], sum(counts.get(key, 0) for key in _SUMMED), notes)
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


def normalise_entry(record: Any, fate: Fate, setting: Setting, versions: tuple[Version, ...] = ()) -> Entry:
    """Return the entry that a record makes; `versions` are all its versions, where it has several."""
    if type(record) is not dict:
        setting.notes.kept("unexpected-shape", f"a message that is a {type(record).__name__}")
        return Event(None, "notice", None, fate, "", Opaque(record))
    kind = record.get("type")
    if kind == "gemini":
        return answer(record, fate, setting, versions)
    if kind == "user":
        return question(record, fate, setting)
    if kind in NOTICES:
        return notice(record, fate, setting)
    setting.notes.kept("unknown-type", f"{kind!r:.60}")
    at = setting.notes.time(record.get("timestamp"))
    return Message(_id(record), "system", at, fate, None, None, None, (Opaque(record),))


def answer(record: Record, fate: Fate, setting: Setting, versions: tuple[Version, ...] = ()) -> Message:
    """Return what the model thought, said and did."""
    if len(versions) <= 1:
        try:
            usual = msgspec.convert(record, AnswerRecord)
        except (msgspec.ValidationError, RecursionError):
            pass  # anything but usual
        else:
            if has_utc_times(usual):
                return usual_answer(usual, fate, setting)
    return careful_answer(record, fate, setting, versions)


def usual_answer(record: AnswerRecord, fate: Fate, setting: Setting) -> Message:
    """Return the message of a record whose every field is known to be of its kind."""
    model, tokens = record.model, record.tokens
    parts: list[Part] = []
    if record.thoughts:
        parts = [
            Thinking(thought.subject, thought.description, thought.timestamp) for thought in record.thoughts
        ]
    if record.content:
        parts.append(_spoken(record.content, model))
    calls = record.tool_calls
    if calls:
        parts += [usual_call(call, record.timestamp, setting) for call in calls]
    if tokens is None or (calls and calls[0].timestamp != calls[-1].timestamp):
        setting.notes.may_lack_tokens = True
    return Message(
        record.id,
        "assistant",
        record.timestamp,
        fate,
        None,
        model,
        None if tokens is None else counted(f"{setting.native_id}/{record.id}", tokens, setting.notes),
        tuple(parts),
    )


def careful_answer(
    record: Record, fate: Fate, setting: Setting, versions: tuple[Version, ...] = ()
) -> Message:
    """Return the same, looking at each field: for records that are unusual or have several versions."""
    field, notes = record.get, setting.notes
    message_id, model, content = field("id"), field("model"), field("content")
    thoughts, tokens, value = field("thoughts"), field("tokens"), field("toolCalls")
    at = notes.time(field("timestamp"))
    notes.may_lack_tokens = True
    parts: list[Part] = _thinking(thoughts, notes) if thoughts else []
    recorded = [version["toolCalls"] for version, _ in versions if version.get("toolCalls")]
    if len(recorded) > 1 and all(map(are_identified, recorded)):
        calls = merged_calls(tool_calls(value, at, setting) for value in recorded)
    else:
        calls = tool_calls(value, at, setting) if value else []
    if type(content) is str:
        if content:
            parts.append(_spoken(content, model))
    elif content is not None:
        parts += _content(content, parts, calls, setting, model)
    parts += calls
    made = None if tokens is None else usage(tokens, f"{setting.native_id}/{message_id}", notes)
    if tokens is not None and not is_counted(tokens):
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
        made,
        tuple(parts),
    )


def question(record: Record, fate: Fate, setting: Setting) -> Entry:
    """Return what a person said, or what the CLI said in a person's place."""
    at = setting.notes.time(record.get("timestamp"))
    made = asked(_id(record), at, record.get("content"), record.get("displayContent"), fate, setting)
    if isinstance(made, Event) or record.keys() <= USER_KEYS:
        return made
    return msgspec.structs.replace(made, parts=(*made.parts, _unknown_keys(record, setting.notes, USER_KEYS)))


def asked(  # noqa: PLR0913 - the fields of a user record
    message_id: str | None, at: datetime | None, content: Any, shown: Any, fate: Fate, setting: Setting
) -> Entry:
    """Return the entry of a user record, from its fields."""
    if message_id == ENVIRONMENT_ID:
        return Event(None, "notice", at, fate, plain_text(content))
    parts = said_by_user(content, setting.notes)
    prompt = prompt_of(parts)
    if shown:
        prompt = prompt_of(said_by_user(shown, setting.notes)) or prompt
    if setting.is_subagent:
        parts, prompt = as_task(parts), None
    return Message(message_id, "user", at, fate, prompt, None, None, parts)


def usual_entry(record: MessageRecord, setting: Setting) -> Entry:
    """Return the entry of a record whose every field is known to be of its kind; all of them are live."""
    if type(record) is AnswerRecord:
        return usual_answer(record, "live", setting)
    at = record.timestamp
    if type(record) is UserRecord:
        return asked(record.id, at, record.content, record.display_content, "live", setting)
    kind: EventKind = _NOTICE_KINDS[type(record)]
    text = record.content
    return Event(record.id, kind if text or kind != "info" else "compaction", at, "live", text)


_NOTICE_KINDS: dict[type, EventKind] = {InfoRecord: "info", WarningRecord: "warning", ErrorRecord: "error"}


def notice(record: Record, fate: Fate, setting: Setting) -> Event:
    """Return what the CLI told its user; an empty `info` marks a compaction."""
    content = record.get("content")
    text = plain_text(content)
    at = setting.notes.time(record.get("timestamp"))
    kind: EventKind = "compaction" if record["type"] == "info" and content == "" else record["type"]
    rest = {key: value for key, value in record.items() if key not in ("id", "timestamp", "type", "content")}
    if not all(
        type(part) is str or (type(part) is dict and part.keys() == {"text"}) for part in text_parts(content)
    ):
        rest["content"] = content  # 0.44 and later: a notice may hold data
    elif rest:
        setting.notes.kept("unknown-part", "unknown keys in a notice: " + ", ".join(sorted(rest)))
    return Event(_id(record), kind, at, fate, text, Opaque(rest) if rest else None)


def _thinking(thoughts: Any, notes: Notes) -> list[Part]:
    if type(thoughts) is not list:
        notes.kept("unexpected-shape", "thoughts is no list")
        return [Opaque(thoughts)]
    return [part for thought in thoughts for part in _thought(thought, notes)]


def _thought(thought: Any, notes: Notes) -> Iterator[Part]:
    if type(thought) is dict:
        subject, text = thought.get("subject"), thought.get("description")
        if type(text) is str and (subject is None or type(subject) is str):
            yield Thinking(subject, text, notes.time(thought.get("timestamp")))
            if not thought.keys() <= THOUGHT_KEYS:
                yield _unknown_keys(thought, notes, THOUGHT_KEYS)
            return
    notes.kept("unexpected-shape", "a thought without a description")
    yield Opaque(thought)


def _spoken(text: str, model: Any) -> Part:
    """Nobody said the words with which the CLI lets its model accept a context."""
    return Text(text) if model or text not in ACKNOWLEDGEMENTS else Context("acknowledgement", text)


def _content(
    content: Any, thinking: list[Part], calls: list[ToolCall | Opaque], setting: Setting, model: Any
) -> list[Part]:
    """Return the parts of content in list form, without what thoughts and tool calls say already."""
    rendered = [f"**{part.subject or ''}** {part.text}" for part in thinking if isinstance(part, Thinking)]
    called = {call.id for call in calls if isinstance(call, ToolCall)}
    parts: list[Part] = []
    for item in text_parts(content):
        if type(item) is str:
            parts.append(_spoken(item, model))
        elif type(item) is dict and type(item.get("functionCall")) is dict:
            parts.extend(_function_call(item, called, setting.notes))
        elif type(item) is dict and item.get("thought") is True and item.get("text") in rendered:
            continue
        elif type(item) is dict and item.keys() == {"text"} and type(item["text"]) is str:
            if item["text"]:
                parts.append(_spoken(item["text"], model))
        else:
            parts.extend(unlike_text(item, setting.notes))
    return parts


def _function_call(item: Record, called: set[str], notes: Notes) -> list[Part]:
    """Return a call that stands in content only; its result comes later, in a user record."""
    call = item["functionCall"]
    call_id, name, arguments = call.get("id"), call.get("name"), call.get("args")
    if type(call_id) is str and call_id in called:
        return []
    if type(name) is not str:
        return [Opaque(item)]
    signature = item.get("thoughtSignature")
    return [
        built(
            call_id if type(call_id) is str else notes.call_id(name),
            name,
            arguments if type(arguments) is dict else {},
            NOTHING,
            "unknown",
            signature=signature if type(signature) is str else None,
        )
    ]


def _unknown_keys(record: Record, notes: Notes, known: frozenset[str]) -> Opaque:
    unknown = {key: value for key, value in record.items() if key not in known}
    notes.kept("unknown-part", "unknown keys in a message: " + ", ".join(sorted(unknown)))
    return Opaque(unknown)


def _id(record: Record) -> str | None:
    message_id = record.get("id")
    return message_id if type(message_id) is str else None

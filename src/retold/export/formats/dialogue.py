"""A timeline as a dialogue with a model: what was put to it, and each of its answers with all the pieces it came in."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from retold.export.formats.registry import ExportOptions
from retold.model.session import (
    Attachment,
    Context,
    Entry,
    Event,
    Fate,
    Message,
    Opaque,
    Part,
    Session,
    Text,
    Thinking,
    ToolCall,
)
from retold.model.usage import Totals, Usage, totals

SPOKEN = ("shell", "task")
"""Context that stands for somebody's words: a command that the person ran, the task that a subagent was given."""
_VERSIONS = ("version", "cli_version")
"""Under which names agents record which version of them it was."""
_QUIET = ("notice", "info", "warning")


class ModelTurn(msgspec.Struct, frozen=True):
    """What a model answered to one request."""

    messages: tuple[Message, ...]
    """Its pieces, each with those parts that are to be told."""
    usage: Totals | None
    """None where nothing is recorded, or another answer has told it: each request counts once."""

    @property
    def fate(self) -> Fate:
        """What became of it."""
        return self.messages[0].fate

    @property
    def own(self) -> bool:
        """False if it was copied from another session."""
        return self.messages[0].own

    @property
    def model(self) -> str | None:
        """Which model it was, where that is recorded."""
        return next((message.model for message in self.messages if message.model), None)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What all the pieces say."""
        return tuple(part for message in self.messages for part in message.parts)


Said = Message | Event | ModelTurn
"""A message of the person or the system, something that happened, or an answer."""


def dialogue(session: Session, choice: ExportOptions) -> Iterator[Said]:
    """Yield what was said and what happened, as much of it as was chosen."""
    billed = _billed(session.timeline)
    pieces: list[Message] = []
    asides: list[Entry] = []
    for entry in session.timeline:
        if pieces and _goes_on(entry, pieces[-1]):
            pieces.append(entry)  # type: ignore[arg-type]  # only messages go on
        elif pieces and pieces[-1].response is not None and _is_aside(entry):
            asides.append(entry)
        else:
            yield from _told(pieces, asides, billed, choice)
            is_answer = isinstance(entry, Message) and entry.role == "assistant"
            pieces, asides = ([entry], []) if is_answer else ([], [entry])  # type: ignore[list-item]
    yield from _told(pieces, asides, billed, choice)


def text_of(parts: Iterable[Part]) -> str:
    """Return what is said in parts, in words."""
    said = (part.text for part in parts if isinstance(part, Text | Context))
    return "\n\n".join(text for text in said if text)


def agent_version(session: Session) -> str | None:
    """Return which version of the agent it was, the last where there were several."""
    for name in _VERSIONS:
        found = session.extra.get(name)
        last = found[-1] if isinstance(found, list) and found else found
        if isinstance(last, str) and last:
            return last
    return None


def _billed(timeline: Iterable[Entry]) -> dict[str, Usage]:
    messages = (entry for entry in timeline if isinstance(entry, Message) and entry.own)
    return {message.usage.request: message.usage for message in messages if message.usage is not None}


def _goes_on(entry: Entry, before: Message) -> bool:
    """Tell whether an entry is the next piece of an answer."""
    return (
        isinstance(entry, Message)
        and entry.role == "assistant"
        and entry.response is not None
        and (entry.response, entry.fate, entry.own) == (before.response, before.fate, before.own)
    )


def _is_aside(entry: Entry) -> bool:
    """Tell whether more of an answer may follow: results of its first calls often stand between its pieces."""
    return isinstance(entry, Event) or (entry.role == "user" and entry.prompt is None)


def _told(
    pieces: list[Message], asides: list[Entry], billed: dict[str, Usage], choice: ExportOptions
) -> Iterator[Said]:
    if pieces:
        requests = [piece.usage.request for piece in pieces if piece.usage is not None and piece.own]
        usages = [billed.pop(request) for request in dict.fromkeys(requests) if request in billed]
        yield ModelTurn(tuple(_chosen(piece, choice) for piece in pieces), totals(usages) if usages else None)
    for entry in asides:
        if isinstance(entry, Message):
            message = _chosen(entry, choice)
            if message.parts:
                yield message
        elif entry.kind not in _QUIET or (choice.notices and (entry.text or entry.opaque)):
            yield entry


def _chosen(message: Message, choice: ExportOptions) -> Message:
    """Return a message with those parts that are to be told; of a prompt in several texts, the human's own words once."""
    parts = [told for part in message.parts for told in _part(part, choice)]
    if message.prompt is not None:
        rest: list[Part] = [part for part in parts if not isinstance(part, Text)]
        parts = [Text(message.prompt), *rest] if message.prompt else rest
    return msgspec.structs.replace(message, parts=tuple(parts))


def _part(part: Part, choice: ExportOptions) -> Iterator[Part]:
    match part:
        case Thinking():
            yield from (part,) if choice.thoughts else ()
        case ToolCall():
            yield from _call(part, choice)
        case Context():
            if part.text is not None and (choice.notices or part.kind in SPOKEN):
                yield part
        case Opaque():
            yield from (part,) if choice.notices else ()
        case _:
            yield part


def _call(call: ToolCall, choice: ExportOptions) -> Iterator[ToolCall]:
    if choice.tools == "full":
        yield call
    elif choice.tools == "names":
        nothing = {"result": None, "full_result": None, "error": None, "attachments": ()}
        yield msgspec.structs.replace(call, arguments={}, **nothing)


SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"
UNKNOWN = "unknown"
_PROVIDERS = {
    "gemini": "gcp.gen_ai",  # which of Google's endpoints it was is not recorded
    "gemma": "gcp.gen_ai",
    "claude": "anthropic",
    "gpt": "openai",
    "codex": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "grok": "x_ai",
    "deepseek": "deepseek",
    "mistral": "mistral_ai",
    "codestral": "mistral_ai",
    "devstral": "mistral_ai",
    "kimi": "moonshot_ai",
}
"""Who makes a model, by how its name begins."""
_MODALITIES = ("image", "video", "audio")

Json = dict[str, Any]


def provider(models: Iterable[str | None]) -> str:
    """Return who makes the first model that is known: agents seldom record whom they asked."""
    for model in models:
        name = (model or "").lower().rpartition("/")[2]
        for start, maker in _PROVIDERS.items():
            if name.startswith(start):
                return maker
    return UNKNOWN


def tokens(usage: Totals) -> Iterator[tuple[str, int]]:
    """Yield what is recorded of the tokens; here those of thoughts are part of the output."""
    figures = {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": _sum(usage.output, usage.reasoning),
        "gen_ai.usage.cache_read.input_tokens": usage.cached,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }
    yield from ((name, figure) for name, figure in figures.items() if figure is not None)


def input_message(message: Message) -> Json:
    """Return what was put to the model."""
    return {"role": message.role, "parts": [_gen_ai_part(part) for part in message.parts]}


def output_message(answer: ModelTurn) -> Json:
    """Return what the model answered; that it stopped, or wants a tool, is seen from what it says."""
    parts = [_gen_ai_part(part) for part in answer.parts]
    reason = "tool_call" if any(isinstance(part, ToolCall) for part in answer.parts) else "stop"
    return {"role": "assistant", "parts": parts, "finish_reason": reason}


def said_message(text: str) -> Json:
    """Return words of the model alone."""
    return {"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}


def result_message(call: ToolCall) -> Json:
    """Return what a tool gave back to the model."""
    files = [_gen_ai_part(attachment) for attachment in call.attachments]
    told = {"type": "tool_call_response", "id": call.id, "response": outcome(call)}
    return {"role": "tool", "parts": [told, *files]}


def outcome(call: ToolCall) -> str:
    """Return what came of a call, in words."""
    result = call.full_result or call.result
    return "\n\n".join(text for text in (result, call.error) if text and text.strip())


def _gen_ai_part(part: Part) -> Json:
    match part:
        case Text():
            return {"type": "text", "content": part.text}
        case Thinking():
            words = (part.subject, part.text)
            return {"type": "reasoning", "content": "\n".join(word for word in words if word)}
        case ToolCall():
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments}
        case Attachment():
            return _file(part)
        case Context():
            return {"type": "text", "content": part.text or "", "context": part.kind}
        case Opaque():
            return {"type": "opaque", "value": part.value}


def _file(file: Attachment) -> Json:
    media = file.media_type
    modality = (media or "").partition("/")[0]
    told = {"mime_type": media, "modality": modality if modality in _MODALITIES else "document"}
    if file.data is not None:
        return {"type": "blob", **told, "content": file.data}
    return {"type": "uri", **told, "uri": file.path or ""}


def _sum(*figures: int | None) -> int | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None

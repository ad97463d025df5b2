"""A timeline as a dialogue with a model, and its messages in the form of the GenAI semantic conventions."""

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
    Totals,
    Usage,
    sum_usage,
)

SPOKEN = ("shell", "task")
"""Context with words of a person or a calling agent: a shell command, and the task of a subagent."""
_VERSIONS = ("version", "cli_version")
"""Fields in which agents record their version."""
_QUIET = ("notice", "info", "warning")


class ModelTurn(msgspec.Struct, frozen=True):
    """The answer of a model to one request."""

    messages: tuple[Message, ...]
    """Its messages, with the parts that the options include."""
    usage: Totals | None
    """None if no tokens are recorded, or another answer has them: each request counts once."""

    @property
    def fate(self) -> Fate:
        """The fate of the answer."""
        return self.messages[0].fate

    @property
    def own(self) -> bool:
        """Whether it belongs to this session and is not copied from another."""
        return self.messages[0].own

    @property
    def model(self) -> str | None:
        """The model, if it is recorded."""
        return next((message.model for message in self.messages if message.model), None)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of all messages."""
        return tuple(part for message in self.messages for part in message.parts)


DialogueItem = Message | Event | ModelTurn
"""A message of a person or the system, an event, or an answer."""


def dialogue_items(session: Session, options: ExportOptions) -> Iterator[DialogueItem]:
    """Yield messages, events and answers, as far as the options include them."""
    own = (entry for entry in session.timeline if isinstance(entry, Message) and entry.own)
    usages = {message.usage.request: message.usage for message in own if message.usage is not None}
    pieces: list[Message] = []
    asides: list[Entry] = []
    for entry in session.timeline:
        if pieces and _continues(entry, pieces[-1]):
            pieces.append(entry)  # type: ignore[arg-type]  # only messages continue an answer
        elif pieces and pieces[-1].response is not None and _is_aside(entry):
            asides.append(entry)
        else:
            yield from _items(pieces, asides, usages, options)
            is_answer = isinstance(entry, Message) and entry.role == "assistant"
            pieces, asides = ([entry], []) if is_answer else ([], [entry])  # type: ignore[list-item]
    yield from _items(pieces, asides, usages, options)


def parts_text(parts: Iterable[Part]) -> str:
    """Return the texts of parts."""
    texts = (part.text for part in parts if isinstance(part, Text | Context))
    return "\n\n".join(text for text in texts if text)


def agent_version(session: Session) -> str | None:
    """Return the version of the agent, the last one if there were several."""
    for name in _VERSIONS:
        versions = session.extra.get(name)
        last = versions[-1] if isinstance(versions, list) and versions else versions
        if isinstance(last, str) and last:
            return last
    return None


def _continues(entry: Entry, before: Message) -> bool:
    """Return whether an entry is the next piece of an answer."""
    return (
        isinstance(entry, Message)
        and entry.role == "assistant"
        and entry.response is not None
        and (entry.response, entry.fate, entry.own) == (before.response, before.fate, before.own)
    )


def _is_aside(entry: Entry) -> bool:
    """Return whether an answer may continue after an entry: results of its first calls often stand between its pieces."""
    return isinstance(entry, Event) or (entry.role == "user" and entry.prompt is None)


def _items(
    pieces: list[Message], asides: list[Entry], by_request: dict[str, Usage], options: ExportOptions
) -> Iterator[DialogueItem]:
    if pieces:
        requests = [piece.usage.request for piece in pieces if piece.usage is not None and piece.own]
        usages = [by_request.pop(request) for request in dict.fromkeys(requests) if request in by_request]
        messages = tuple(_select_parts(piece, options) for piece in pieces)
        yield ModelTurn(messages, sum_usage(usages) if usages else None)
    for entry in asides:
        if isinstance(entry, Message):
            message = _select_parts(entry, options)
            if message.parts:
                yield message
        elif entry.kind not in _QUIET or (options.notices and (entry.text or entry.opaque)):
            yield entry


def _select_parts(message: Message, options: ExportOptions) -> Message:
    """Return a message with the parts that the options include; its prompt replaces its texts."""
    parts = [selected for part in message.parts for selected in _part(part, options)]
    if message.prompt is not None:
        rest: list[Part] = [part for part in parts if not isinstance(part, Text)]
        parts = [Text(message.prompt), *rest] if message.prompt else rest
    return msgspec.structs.replace(message, parts=tuple(parts))


def _part(part: Part, options: ExportOptions) -> Iterator[Part]:
    match part:
        case Thinking():
            yield from (part,) if options.thoughts else ()
        case ToolCall():
            yield from _call(part, options)
        case Context():
            if part.text is not None and (options.notices or part.kind in SPOKEN):
                yield part
        case Opaque():
            yield from (part,) if options.notices else ()
        case _:
            yield part


def _call(call: ToolCall, options: ExportOptions) -> Iterator[ToolCall]:
    if options.tools == "full":
        yield call
    elif options.tools == "names":
        nothing = {"result": None, "full_result": None, "error": None, "attachments": ()}
        yield msgspec.structs.replace(call, arguments={}, **nothing)


SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"
UNKNOWN = "unknown"
_PROVIDERS = {
    "gemini": "gcp.gen_ai",  # which of Google's endpoints was used is not recorded
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
"""Providers by the beginning of the model's name."""
_MODALITIES = ("image", "video", "audio")

Json = dict[str, Any]


def provider_name(models: Iterable[str | None]) -> str:
    """Return the provider of the first known model: agents seldom record the endpoint."""
    for model in models:
        name = (model or "").lower().rpartition("/")[2]
        for start, maker in _PROVIDERS.items():
            if name.startswith(start):
                return maker
    return UNKNOWN


def token_attributes(usage: Totals) -> Iterator[tuple[str, int]]:
    """Yield the recorded tokens; output tokens include those of thoughts."""
    output = [figure for figure in (usage.output, usage.reasoning) if figure is not None]
    figures = {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": sum(output) if output else None,
        "gen_ai.usage.cache_read.input_tokens": usage.cached,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }
    yield from ((name, figure) for name, figure in figures.items() if figure is not None)


def input_message(message: Message) -> Json:
    """Return a message to the model."""
    return {"role": message.role, "parts": [_gen_ai_part(part) for part in message.parts]}


def output_message(answer: ModelTurn) -> Json:
    """Return an answer; its finish reason follows from its content."""
    parts = [_gen_ai_part(part) for part in answer.parts]
    reason = "tool_call" if any(isinstance(part, ToolCall) for part in answer.parts) else "stop"
    return {"role": "assistant", "parts": parts, "finish_reason": reason}


def text_message(text: str) -> Json:
    """Return an answer that is text alone."""
    return {"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}


def result_message(call: ToolCall) -> Json:
    """Return the result of a tool as a message to the model."""
    files = [_gen_ai_part(attachment) for attachment in call.attachments]
    response = {"type": "tool_call_response", "id": call.id, "response": result_text(call)}
    return {"role": "tool", "parts": [response, *files]}


def result_text(call: ToolCall) -> str:
    """Return the result and the error of a call."""
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
    fields = {"mime_type": media, "modality": modality if modality in _MODALITIES else "document"}
    if file.data is not None:
        return {"type": "blob", **fields, "content": file.data}
    return {"type": "uri", **fields, "uri": file.path or ""}

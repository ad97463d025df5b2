"""The words of OpenTelemetry's semantic conventions for generative AI, version 1.41: providers, messages, tokens.

Messages follow the JSON schemas for `gen_ai.input.messages` and `gen_ai.output.messages`
(open-telemetry/semantic-conventions v1.41.0, docs/gen-ai).
"""

from collections.abc import Iterable, Iterator
from typing import Any

from retold.export.dialogue import ModelTurn
from retold.model.session import Attachment, Context, Message, Opaque, Part, Text, Thinking, ToolCall
from retold.model.usage import Totals

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

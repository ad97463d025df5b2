"""Events as lines to read, one each."""

from retold.export.transcript import LINE, TranscriptLine, key_argument_of
from retold.export.zone import second
from retold.model.events import (
    AnyStep,
    AssistantText,
    AssistantThought,
    SessionEnd,
    SessionStart,
    ToolResult,
    ToolUse,
    UserPrompt,
)


def event_line(step: AnyStep) -> TranscriptLine:
    """Return one event on one line: when it was here, what, and the words that tell most."""
    at = second(step.at) if step.at else "-"
    kind = type(step).__struct_config__.tag
    told = " ".join(_told(step).split())
    told = told if len(told) <= LINE else told[: LINE - 1] + "…"
    fate = "" if step.fate == "live" else f" ({step.fate})"
    is_bad = isinstance(step, ToolResult) and step.status == "error"
    return TranscriptLine(
        "bad" if is_bad else "plain", f"{step.seq:>4}  {at}  {kind:<14}{fate}  {told}".rstrip()
    )


def _told(step: AnyStep) -> str:
    match step:
        case SessionStart():
            return f"{step.agent} {step.session}"
        case UserPrompt() | AssistantText():
            return step.text
        case AssistantThought():
            return ": ".join(words for words in (step.subject, step.text) if words)
        case ToolUse():
            return f"{step.tool.name} {key_argument_of(step.arguments)}"
        case ToolResult():
            return f"{step.tool.name} {step.status}: {step.error or step.result or ''}"
        case SessionEnd():
            return step.status

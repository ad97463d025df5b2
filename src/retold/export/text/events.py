"""Events of sessions as lines for the terminal, live while they happen and in a listing."""

from collections.abc import Iterator, Sequence

from retold.export.text.formatting import DAY, format_second
from retold.export.transcript import LINE, MARKS, Style, TranscriptLine, key_argument, one_line
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
from retold.model.session import Session

_SPEAKER_WIDTH = 7
_RUNNING = "…"


def format_live_heading(session: Session) -> TranscriptLine:
    """Return the heading of live lines: the key and project of a session, and the parent of a subagent."""
    root = session.project.root or session.project.native_key or ""
    place = root.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    of = f"subagent of {session.parent}" if session.kind == "subagent" and session.parent else ""
    return TranscriptLine(
        "title", _indent(session) + " · ".join(one_line(word) for word in (session.key, place, of) if word)
    )


def format_live_steps(session: Session, steps: Sequence[AnyStep]) -> Iterator[TranscriptLine]:
    """Yield the new steps of a session. A call stands on one line with its result if both are new."""
    results = {(step.call_id, step.tool.name): step for step in steps if isinstance(step, ToolResult)}
    used = {(step.call_id, step.tool.name) for step in steps if isinstance(step, ToolUse)}
    for step in steps:
        at = format_second(step.at)[DAY + 1 :] if step.at else " " * 8
        for line in _step_lines(step, session.agent, results, used):
            yield TranscriptLine(line.style, f"{_indent(session)}{at}  {line.text}".rstrip())
            at = " " * 8


def _step_lines(
    step: AnyStep, agent: str, results: dict[tuple[str, str], ToolResult], used: set[tuple[str, str]]
) -> Iterator[TranscriptLine]:
    match step:
        case UserPrompt():
            yield from _spoken("you", "you", step.text)
        case AssistantThought():
            yield from _spoken("faint", "~", ": ".join(words for words in (step.subject, step.text) if words))
        case AssistantText():
            yield from _spoken("plain", agent, step.text)
        case ToolUse():
            text = one_line(key_argument(step.arguments))
            yield from _call(step.tool.name, text, results.get((step.call_id, step.tool.name)))
        case ToolResult() if (step.call_id, step.tool.name) not in used:
            yield from _call(step.tool.name, step.status, step)
        case _:
            pass  # the heading shows the start, and a call shows its result


def _spoken(style: Style, who: str, text: str) -> Iterator[TranscriptLine]:
    for number, line in enumerate(text.strip("\n").splitlines()):
        yield TranscriptLine(style, f"{who if number == 0 else '':<{_SPEAKER_WIDTH}} {line}")


def _call(name: str, text: str, result: ToolResult | None) -> Iterator[TranscriptLine]:
    mark = _RUNNING if result is None else MARKS.get(result.status, "?")
    is_bad = result is not None and result.status == "error"
    yield TranscriptLine("bad" if is_bad else "tool", f"{mark} {one_line(name)}{'  ' + text if text else ''}")
    if result is not None and result.error:
        yield TranscriptLine("bad", f"    {one_line(result.error)}")


def _indent(session: Session) -> str:
    return "    " if session.kind == "subagent" else ""


def format_event(step: AnyStep) -> TranscriptLine:
    """Return an event on one line: its number, local time, kind, fate and text."""
    at = format_second(step.at) if step.at else "-"
    kind = type(step).__struct_config__.tag
    text = " ".join(_step_text(step).split())
    text = text if len(text) <= LINE else text[: LINE - 1] + "…"
    fate = "" if step.fate == "live" else f" ({step.fate})"
    is_bad = isinstance(step, ToolResult) and step.status == "error"
    return TranscriptLine(
        "bad" if is_bad else "plain", f"{step.seq:>4}  {at}  {kind:<14}{fate}  {text}".rstrip()
    )


def _step_text(step: AnyStep) -> str:
    match step:
        case SessionStart():
            return f"{step.agent} {step.session}"
        case UserPrompt() | AssistantText():
            return step.text
        case AssistantThought():
            return ": ".join(words for words in (step.subject, step.text) if words)
        case ToolUse():
            return f"{step.tool.name} {key_argument(step.arguments)}"
        case ToolResult():
            return f"{step.tool.name} {step.status}: {step.error or step.result or ''}"
        case SessionEnd():
            return step.status

"""What happens in sessions as lines to read while it happens."""

from collections.abc import Iterator, Sequence

from retold.export.text.times import DAY, second
from retold.export.transcript import LINE, MARKS, Style, TranscriptLine, key_argument_of, one_line
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

_NAME = 7
"""How wide the column is in which it stands who speaks."""
_RUNNING = "…"


def live_heading(session: Session) -> TranscriptLine:
    """Return the line that says in which session something happens; one of a subagent names that of its parent."""
    root = session.project.root or session.project.native_key or ""
    place = root.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    of = f"subagent of {session.parent}" if session.kind == "subagent" and session.parent else ""
    return TranscriptLine(
        "title", _indent(session) + " · ".join(one_line(word) for word in (session.key, place, of) if word)
    )


def live_lines(session: Session, steps: Sequence[AnyStep]) -> Iterator[TranscriptLine]:
    """Yield what is new in a session; a call whose result is new as well stands on one line with it."""
    results = {(step.call_id, step.tool.name): step for step in steps if isinstance(step, ToolResult)}
    used = {(step.call_id, step.tool.name) for step in steps if isinstance(step, ToolUse)}
    for step in steps:
        at = second(step.at)[DAY + 1 :] if step.at else " " * 8
        for line in _lines(step, session.agent, results, used):
            yield TranscriptLine(line.style, f"{_indent(session)}{at}  {line.text}".rstrip())
            at = " " * 8


def _lines(
    step: AnyStep,
    agent: str,
    results: dict[tuple[str, str], ToolResult],
    used: set[tuple[str, str]],
) -> Iterator[TranscriptLine]:
    match step:
        case UserPrompt():
            yield from _spoken("you", "you", step.text)
        case AssistantThought():
            yield from _spoken("faint", "~", ": ".join(words for words in (step.subject, step.text) if words))
        case AssistantText():
            yield from _spoken("plain", agent, step.text)
        case ToolUse():
            told = one_line(key_argument_of(step.arguments))
            yield from _call(step.tool.name, told, results.get((step.call_id, step.tool.name)))
        case ToolResult() if (step.call_id, step.tool.name) not in used:
            yield from _call(step.tool.name, step.status, step)
        case _:
            pass  # a start stands in the heading, and a result with its call


def _spoken(style: Style, who: str, text: str) -> Iterator[TranscriptLine]:
    for number, line in enumerate(text.strip("\n").splitlines()):
        yield TranscriptLine(style, f"{who if number == 0 else '':<{_NAME}} {line}")


def _call(name: str, told: str, result: ToolResult | None) -> Iterator[TranscriptLine]:
    mark = _RUNNING if result is None else MARKS.get(result.status, "?")
    is_bad = result is not None and result.status == "error"
    yield TranscriptLine("bad" if is_bad else "tool", f"{mark} {one_line(name)}{'  ' + told if told else ''}")
    if result is not None and result.error:
        yield TranscriptLine("bad", f"    {one_line(result.error)}")


def _indent(session: Session) -> str:
    return "    " if session.kind == "subagent" else ""


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

"""What there is to know about a session before reading it."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from retold.export.amounts import count, money, span
from retold.export.html.entries import is_part_shown, is_shown
from retold.export.html.frame import RenderContext
from retold.export.telling import ExportOptions
from retold.export.transcript import plural
from retold.export.zone import period
from retold.model.report import PICOS
from retold.model.session import Message, Opaque, Session, Thinking, ToolCall

_ENDS = {
    "success": "with an answer",
    "failure": "with a tool that failed",
    "interrupted": "before an answer came",
}


class Fact(NamedTuple):
    """A name and what it is here."""

    name: str
    value: str


def facts(session: Session, *, has_zone: bool = True) -> Iterator[Fact]:
    """Yield the known facts of a session. Times are local."""
    counts, usage = session.counts, session.usage
    failed = f", {counts.tool_errors:,} failed" if counts.tool_errors else ""
    told = {
        "Agent": session.agent,
        "Model": ", ".join(session.models),
        "Project": _project(session),
        "When": _when(session.started_at, session.ended_at, has_zone=has_zone),
        "Took": _took(session),
        "Prompts": count(counts.prompts),
        "Tool calls": f"{counts.tool_calls:,}{failed}",
        "Tokens": f"{usage.total:,}{' (estimated)' if usage.estimated else ''}"
        if usage.total is not None
        else "",
        "Cost": cost(session.cost_usd) if session.cost_usd is not None else "",
        "Tags": ", ".join(session.tags),
        "Ended": _ENDS[session.status],
        "Session": session.key,
    }
    yield from (Fact(name, value) for name, value in told.items() if value)


def cost(dollars: Decimal | None) -> str:
    """Return money as a person reads it."""
    return money(None if dollars is None else int(dollars * PICOS))


def _when(started_at: datetime | None, ended_at: datetime | None, *, has_zone: bool) -> str:
    if started_at is None:
        return f"until {period(ended_at, None, has_zone=has_zone)}" if ended_at else ""
    return period(started_at, ended_at, has_zone=has_zone)


def _took(session: Session) -> str:
    if session.started_at is None or session.ended_at is None or session.are_times_derived:
        return ""
    seconds = (session.ended_at - session.started_at).total_seconds()
    return span(seconds) if seconds > 0 else ""


def _project(session: Session) -> str:
    project = session.project
    if project.root is None:
        return project.native_key or (project.hash or "")[:8]
    return f"{project.root} (guessed)" if project.evidence == "guessed" else project.root


def problems(session: Session) -> str:
    """Return what went wrong while the session was read."""
    codes = [problem.code for problem in session.problems if problem.severity != "note"]
    return f"{plural(len(codes), 'problem')} while reading: {', '.join(sorted(set(codes)))}" if codes else ""


_OPTIONS = {"thought": "--thoughts", "tool call": "--tools full", "notice": "--notices"}


def left_out(frame: RenderContext) -> str:
    """Return what a page does not show because nobody asked for it, and how to see it; nothing if it shows all."""
    numbers = Counter(_left_out(frame.telling.session, frame.choice))
    kinds = [kind for kind in _OPTIONS if numbers[kind]]
    if not kinds:
        return ""
    told = {kind: plural(numbers[kind], kind) for kind in kinds}
    if "tool call" in told and frame.choice.tools == "names":
        told["tool call"] = f"the details of {told['tool call']}"
    options = " ".join(_OPTIONS[kind] for kind in kinds)
    return f"Left out here: {', '.join(told.values())}. All of it: retold show {frame.key} {options}"


def _left_out(session: Session, choice: ExportOptions) -> Iterator[str]:
    """Yield the kind of each thing that is not shown, or of which only the name is."""
    for entry in session.timeline:
        if isinstance(entry, Message):
            kinds = ((_kind(part), is_part_shown(part, choice)) for part in entry.parts)
            yield from (kind for kind, is_told in kinds if kind and not (is_told and _is_full(kind, choice)))
        elif (entry.text or entry.opaque) and not is_shown(entry, choice):
            yield "notice"


def _is_full(kind: str, choice: ExportOptions) -> bool:
    """Tell whether what is shown is shown with everything in it."""
    return kind != "tool call" or choice.tools == "full"


def _kind(part: object) -> str | None:
    match part:
        case Thinking():
            return "thought"
        case ToolCall():
            return "tool call"
        case Opaque():
            return "notice"
        case _:
            text = getattr(part, "text", None)
            return "notice" if text and text.strip() else None

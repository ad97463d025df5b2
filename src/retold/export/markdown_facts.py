"""The top of a Markdown page: the title, and what there is to know before reading on."""

from collections.abc import Iterator

from retold.export.amounts import money
from retold.export.inline import as_code, as_words
from retold.export.telling import ExportOptions
from retold.export.zone import period
from retold.model.report import PICOS
from retold.model.session import Session


def facts(session: Session, choice: ExportOptions) -> str:
    """Return the title and a short list."""
    lines = (f"- **{name}:** {told}" for name, told in _facts(session, choice) if told)
    return f"# {as_words(session.title or '(no prompt)')}\n\n" + "\n".join(lines) + "\n\n"


def _facts(session: Session, choice: ExportOptions) -> Iterator[tuple[str, str]]:
    root = session.project.root or session.project.native_key
    yield "Agent", " · ".join(map(as_words, (session.agent, *session.models)))
    yield "Project", as_code(root) if root else ""
    yield "Time", _time(session)
    yield "Content", _content(session)
    yield "Cost", "" if session.cost_usd is None else money(int(session.cost_usd * PICOS))
    yield "Tags", ", ".join(map(as_code, session.tags))
    yield "Session", as_code(session.key)
    codes = {problem.code for problem in session.problems if problem.severity != "note"}
    yield "Problems while reading", ", ".join(sorted(codes))
    yield "Secrets", "taken out" if choice.is_redacted else "not looked for: nothing was taken out"


def _time(session: Session) -> str:
    if session.started_at is None:
        return ""
    return period(session.started_at, session.ended_at)


def _content(session: Session) -> str:
    counts, usage = session.counts, session.usage
    told = [_plural(counts.prompts, "prompt"), _plural(counts.tool_calls, "tool call")]
    if counts.tool_errors:
        told.append(f"{counts.tool_errors:,} failed")
    if usage.total is not None:
        told.append(_plural(usage.total, "token") + (" (estimated)" if usage.estimated else ""))
    return ", ".join(told)


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

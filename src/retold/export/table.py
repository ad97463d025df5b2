"""Sessions as a table that fits the terminal."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from retold.export.transcript import Line
from retold.model.session import Session
from retold.projects.matching import last_name
from retold.query.places import Place

WHEN, AGENT, PROJECT, NUMBER, TOKENS = 10, 6, 12, 5, 7
NARROWEST_TITLE = 12


def session_table(sessions: Sequence[Session], columns: int) -> Iterator[Line]:
    """Yield a heading and a line per conversation; subagents are counted in their parent's line."""
    title = max(NARROWEST_TITLE, columns - (WHEN + AGENT + PROJECT + 2 * NUMBER + TOKENS + 6))
    yield Line("faint", _row(["when", "agent", "project", "title", "msgs", "tools", "tokens"], title))
    shown = {session.key for session in sessions}
    for session in sessions:
        if session.kind != "subagent" or session.parent not in shown:
            yield Line("plain", _row(_cells(session), title))


def _cells(session: Session) -> list[str]:
    return [
        f"{session.ended_at:%Y-%m-%d}" if session.ended_at else "-",
        session.agent,
        project_name(session),
        _title(session),
        str(session.counts.messages),
        str(session.counts.tool_calls),
        short_number(session.usage.total) + ("~" if session.usage.estimated else ""),
    ]


def project_name(session: Session) -> str:
    """Return the last name of the root, else the first 8 characters of the hash."""
    project = session.project
    if project.root:
        return last_name(project.root) or project.root
    return (project.hash or project.native_key or "-")[:8]


def project_line(place: Place) -> str:
    """Return a project on one line: its name, how many sessions, when last, its root and how that is known."""
    when = f"{place.last_at:%Y-%m-%d}" if place.last_at else "-"
    where = f"{place.root} ({place.evidence})" if place.root else "root unknown"
    return f"{fitted(place.name, 20)} {place.sessions:>5}  {when}  {where}"


def _title(session: Session) -> str:
    told = session.title or "(no prompt is left)"
    if session.kind == "prompts-only" and session.title:
        told = f"(only prompts left) {told}"
    agents = (
        f" +{len(session.children)} agent{'s' if len(session.children) > 1 else ''}"
        if session.children
        else ""
    )
    return told + agents


def _row(cells: Sequence[str], title: int) -> str:
    widths = (WHEN, AGENT, PROJECT, title)
    left = [fitted(cell, width) for cell, width in zip(cells, widths, strict=False)]
    right = [cell.rjust(width) for cell, width in zip(cells[4:], (NUMBER, NUMBER, TOKENS), strict=True)]
    return " ".join((*left, *right))


def fitted(text: str, width: int) -> str:
    """Return text on one line in exactly `width` columns; wide characters take two."""
    line = " ".join(text.split())
    if _columns(line) <= width:
        return line + " " * (width - _columns(line))
    kept = ""
    for character in line:
        if _columns(kept + character) > width - 1:
            break
        kept += character
    return kept + "…" + " " * (width - 1 - _columns(kept))


def _columns(text: Iterable[str]) -> int:
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def short_number(number: int | None) -> str:
    """Return a count in few characters: 950, 12.7k, 3.1M."""
    if number is None:
        return "-"
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if number >= size:
            scaled = number / (1000 if unit == "k" else size)
            return f"{scaled:.1f}{unit}" if scaled < 100 else f"{scaled:.0f}{unit}"  # noqa: PLR2004 - three digits
    return str(number)

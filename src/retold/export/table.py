"""Sessions and projects as tables that fit the terminal."""

from __future__ import annotations

import unicodedata

from retold.projects.matching import last_name

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from retold.archive.queries.listing import SessionRow
    from retold.search.listing import ProjectPlace

WHEN, AGENT, PROJECT, NUMBER, TOKENS, ID = 10, 6, 12, 5, 7, 8
NARROWEST_TITLE = 12
ROW = f"%-{WHEN}s %-{AGENT}s %s %s %{NUMBER}s %{TOKENS}s  %-{ID}s"


def session_table(sessions: Sequence[SessionRow], columns: int) -> Iterator[str]:
    """Yield a heading and a line per conversation; subagents are counted in their parent's line.

    The id is the start of the agent's own: enough for `retold show`.
    """
    width = max(NARROWEST_TITLE, columns - (WHEN + AGENT + PROJECT + NUMBER + TOKENS + ID + 7))
    yield ROW % ("when", "agent", fitted("project", PROJECT), fitted("title", width), "msgs", "tokens", "id")
    projects: dict[tuple[str | None, ...], str] = {}
    for (
        agent,
        kind,
        root,
        native_key,
        project,
        title,
        count,
        total,
        estimated,
        agents,
        native_id,
        day,
    ) in sessions:
        known = root, project, native_key
        if known not in projects:
            projects[known] = fitted(project_name(*known), PROJECT)
        yield ROW % (
            day or "-",
            agent,
            projects[known],
            fitted(_told(title, kind, agents), width),
            count,
            short_number(total) + ("~" if estimated else ""),
            native_id[:ID] if native_id else "-",
        )


def project_name(root: str | None, project_hash: str | None, native_key: str | None) -> str:
    """Return the last name of the root, else the first 8 characters of the hash."""
    if root:
        return last_name(root) or root
    return (project_hash or native_key or "-")[:8]


def project_line(place: ProjectPlace) -> str:
    """Return a project on one line: its name, how many sessions, when last, its root and how that is known."""
    when = day_of(place.last_at)
    where = f"{place.root} ({place.evidence})" if place.root else "root unknown"
    return f"{fitted(place.name, 20)} {place.sessions:>5}  {when}  {where}"


def day_of(at: str | None) -> str:
    """Return the day of a time, here; it comes as ISO 8601 in UTC."""
    from retold.export.zone import day  # noqa: PLC0415 - a list has its days from the archive
    from retold.search.dates import moment_of  # noqa: PLC0415

    moment = moment_of(at)
    return (at or "-")[:WHEN] if moment is None else day(moment)


def _told(title: str | None, kind: str, agents: int) -> str:
    told = title or "(no prompt is left)"
    if kind == "prompts-only" and title:
        told = f"(only prompts left) {told}"
    if agents:
        told += f" +{agents} agent{'s' if agents > 1 else ''}"
    return told


def fitted(text: str, width: int) -> str:
    """Return text on one line in exactly `width` columns; wide characters take two."""
    line = text if text.isprintable() else " ".join(text[: width * 8].split())
    shown = line[:width]
    if shown.isascii() or shown.replace("…", ".").isascii():
        return shown.ljust(width) if len(line) <= width else shown[:-1] + "…"
    used, kept = 0, ""
    for character in line:
        columns = character_width(character)
        if used + columns > width:
            break
        used, kept = used + columns, kept + character
    if kept == line:
        return line + " " * (width - used)
    while used > width - 1:
        used -= character_width(kept[-1])
        kept = kept[:-1]
    return kept + "…" + " " * (width - 1 - used)


def character_width(character: str) -> int:
    """Return how many columns of a terminal a character takes."""
    if character < "\u0300":
        return 1
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

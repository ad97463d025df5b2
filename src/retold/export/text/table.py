"""Sessions and projects as tables that fit the terminal."""

from __future__ import annotations

import unicodedata

from retold.projects.matching import last_name

TYPE_CHECKING = False  # importing typing would cost half a start of Python
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
    from retold.export.text.times import day  # noqa: PLC0415 - a list has its days from the archive
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


NAMELESS = "(unknown)"
LONGEST = 400
"""How much of a name is looked at: more than any line has room for."""
_HASH = 64
_EMOJI_STYLE = "\ufe0f"  # widens what stands before it in some terminals, and in others not


def clean(name: str) -> str:
    """Return a name on one line, without what has no width or changes the direction of what follows."""
    name = name[:LONGEST]
    if not (name.isascii() and name.isprintable()):
        name = "".join(map(_shown, name))
    return " ".join(name.split()) or NAMELESS


def _shown(character: str) -> str:
    if character.isspace():
        return " "
    if character == _EMOJI_STYLE or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return _accent(character)
    return character if character.isprintable() else "\ufffd"


def _accent(character: str) -> str:
    """Keep what scripts are written with; marks that are only there to turn or to hide go."""
    return character if unicodedata.combining(character) else ""


def width_of(text: str) -> int:
    """Return how many columns a text takes."""
    return len(text) if text.isascii() else sum(map(character_width, text))


def shortened(text: str, width: int) -> str:
    """Return a text in at most `width` columns."""
    return text if width_of(text) <= width else fitted(text, width).rstrip()


def end_of(path: str, width: int) -> str:
    """Return a path in at most `width` columns: its end tells most."""
    if width_of(path) <= width:
        return path
    kept, used = "", 1
    for character in reversed(path):
        used += character_width(character)
        if used > width:
            break
        kept = character + kept
    return "…" + kept


def project_names(roots: Iterable[str]) -> dict[str, str]:
    """Return for each root its last name, with as much of the path before it as tells it from the others."""
    roots = list(dict.fromkeys(roots))
    names = {root: _ends(root, 1) for root in roots}
    for parts in range(2, 2 + max(map(_depth, roots), default=0)):
        alike = list(_alike(names))
        if not alike:
            break
        names |= {root: _ends(root, parts) for root in alike}
    return names


def _alike(names: dict[str, str]) -> Iterator[str]:
    shown: dict[str, list[str]] = {}
    for root, name in names.items():
        shown.setdefault(name, []).append(root)
    for roots in shown.values():
        if len(roots) > 1:
            yield from roots


def _ends(root: str, parts: int) -> str:
    if len(root) == _HASH and not set(root) - set("0123456789abcdef"):
        return root[:8] if parts == 1 else root
    if parts == 1:
        return last_name(root) or root
    return "/".join(root.replace("\\", "/").rstrip("/").split("/")[-parts:])


def _depth(root: str) -> int:
    return min(root.replace("\\", "/").count("/"), LONGEST)


JOINT = " · "


def flowed(words: Iterable[str], width: int, joint: str = " ", indent: str = "") -> Iterator[str]:
    """Yield lines of as many words as fit, all but the first indented; a word that is longer than a line is cut."""
    line, used = "", 0
    for word in words:
        start = f"{line}{joint}" if line else ""
        long = width_of(joint) + width_of(word)
        if line and used + long <= width:
            line, used = start + word, used + long
            continue
        if line:
            yield line
        line = shortened(f"{indent if start else ''}{word}", width)
        used = width_of(line)
    if line:
        yield line

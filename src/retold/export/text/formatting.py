"""Plain text for people: names, days and lines of a given width, and characters made safe for terminals, JSON and CSV."""

from __future__ import annotations

import time
import unicodedata

from retold.projects.matching import folder_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from retold.archive.queries.listing import SessionRow
    from retold.search.listing import ProjectSummary

StyledLine = list[tuple[str, str]]
"""A line in pieces: the style and the text of each."""

# Escaping. Patterns are text, so that a command compiles only those that it uses.

_PICTURES = 0x2400
"""Unicode's pictures of control characters begin here."""
HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
"""The inside of a character class: C0 without tab and line end, DEL and C1; direction marks; line and paragraph
separators; characters without width, such as soft hyphens; half surrogates; tags. Every other guard adds to these."""
_HIDDEN = f"[{HIDDEN}]"
_SUSPECT = f"[{HIDDEN}\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]"
# Joiners belong between letters of some scripts and between emoji, one at a time; variant selectors behind a digit or a
# character beyond ASCII, one each, the further ones behind Chinese characters. More of them carry a hidden text.
_MISPLACED = (
    "(?<![^\x00-\x7f\u200c\u200d])[\u200c\u200d]"
    "|(?<![0-9#*\x80-\u200b\u200e-\ufdff\ufe10-\U0010ffff])[\ufe00-\ufe0f]"
    "|(?<![\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
)
_FLAG = "\U0001f3f4([\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6})\U000e007f"
"""The flag of a region, such as Scotland: a black flag, the letters of the region as tags, and the tag that ends them."""
_TAGS = 0xE0000


def escape_control_chars(text: str) -> str:
    """Return text with a visible sign for each character that steers a terminal or is hidden; tabs and line ends stay.

    The flag of a region, which consists of tags, becomes a black flag with the region in brackets.
    """
    import re  # noqa: PLC0415 - most output has nothing to escape

    if re.search(_SUSPECT, text) is None:
        return text
    if "\U0001f3f4" in text:
        text = re.sub(_FLAG, _region_flag, text)
    return replace_with_signs(re.sub(_MISPLACED, "\ufffd", text), re.compile(_HIDDEN))


def _region_flag(flag: re.Match[str]) -> str:
    return f"\U0001f3f4[{''.join(chr(ord(tag) - _TAGS) for tag in flag[1])}]"


def replace_with_signs(text: str, controls: re.Pattern[str]) -> str:
    """Return text with a visible sign for each character that the pattern matches."""
    return text if controls.search(text) is None else text.translate(_Translation(controls, _sign))


def escape_json(line: str) -> str:
    """Return JSON with every hidden character as an escape; the data stay the same."""
    import re  # noqa: PLC0415 - the same

    if re.search(_HIDDEN, line) is None:
        return line
    return line.translate(_Translation(re.compile(_HIDDEN), _json_escape))


class _Translation(dict[int, str]):
    """A table for `str.translate`: each character that occurs is looked at once."""

    def __init__(self, pattern: re.Pattern[str], replace: Callable[[str], str]) -> None:
        super().__init__()
        self._pattern, self._replace = pattern, replace

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = character if self._pattern.match(character) is None else self._replace(character)
        return self[code]


def _sign(character: str) -> str:
    if character < " ":
        return chr(_PICTURES + ord(character))
    return "\u2421" if character == "\x7f" else "\ufffd"


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


_FORMULA = (
    # Blanks and hidden characters, which some spreadsheets skip; then what begins a formula, with its wide and small forms,
    # which do so in East Asian settings.
    f"[\\s{HIDDEN}\xad\u034f\u180b-\u180f\u200c\u200d\u2800\ufe00-\ufe0f\U000e0000-\U000e0fff]*+"
    "[=+\\-@\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b]"
    "|[\t\r\n]"
)
_QUOTED = '",\r\n'
PIECE_LENGTH = 1 << 16
"""Characters of a long text that are written at a time."""


def escape_formula(text: str) -> str:
    """Return text that a spreadsheet shows instead of calculating it."""
    import re  # noqa: PLC0415 - a formula is only escaped in CSV

    return f"'{text}" if re.match(_FORMULA, text) else text


def csv_cell(value: object) -> str:
    """Return a value as a CSV cell; None is empty."""
    text = "" if value is None else str(value)
    if any(character in text for character in _QUOTED):
        return '"' + text.replace('"', '""') + '"'
    return text


def csv_cell_pieces(text: str) -> Iterator[str]:
    """Yield the CSV cell of a long text."""
    quote = '"' if any(character in text for character in _QUOTED) else ""
    yield quote
    yield from (piece.replace('"', '""') for piece in split_text(text))
    yield quote


def split_text(text: str) -> Iterator[str]:
    """Yield a text in pieces of `PIECE_LENGTH`."""
    return (text[start : start + PIECE_LENGTH] for start in range(0, len(text), PIECE_LENGTH))


# Width. Wide characters take two columns of a terminal, combining ones none.

SEPARATOR = " · "
UNNAMED = "(unknown)"
LONGEST_NAME = 400
"""Characters of a name that are looked at: more than any line has room for."""
_EMOJI_STYLE = "\ufe0f"  # widens the character before it in some terminals, and in others not


def clean_name(name: str) -> str:
    """Return a name on one line, without characters that have no width or change the direction of the text."""
    name = name[:LONGEST_NAME]
    if not (name.isascii() and name.isprintable()):
        name = "".join(map(_clean_character, name))
    return " ".join(name.split()) or UNNAMED


def _clean_character(character: str) -> str:
    if character.isspace():
        return " "
    if character == _EMOJI_STYLE or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        # Combining marks belong to scripts; other invisible characters only turn or hide text.
        return character if unicodedata.combining(character) else ""
    return character if character.isprintable() else "\ufffd"


def character_width(character: str) -> int:
    """Return how many columns a character takes."""
    if character < "\u0300":
        return 1
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def text_width(text: str) -> int:
    """Return how many columns a text takes."""
    return len(text) if text.isascii() else sum(map(character_width, text))


def fit_width(text: str, width: int) -> str:
    """Return text on one line in exactly `width` columns."""
    line = text if text.isprintable() else " ".join(text[: width * 8].split())
    shown = line[:width]
    if shown.isascii() or shown.replace("…", ".").isascii():
        return shown.ljust(width) if len(line) <= width else shown[:-1] + "…"
    used, start = 0, ""
    for character in line:
        columns = character_width(character)
        if used + columns > width:
            break
        used, start = used + columns, start + character
    if start == line:
        return line + " " * (width - used)
    while used > width - 1:
        used -= character_width(start[-1])
        start = start[:-1]
    return start + "…" + " " * (width - 1 - used)


def shorten(text: str, width: int) -> str:
    """Return a text in at most `width` columns."""
    return text if text_width(text) <= width else fit_width(text, width).rstrip()


def shorten_path(path: str, width: int) -> str:
    """Return the end of a path, in at most `width` columns."""
    if text_width(path) <= width:
        return path
    end, used = "", 1
    for character in reversed(path):
        used += character_width(character)
        if used > width:
            break
        end = character + end
    return "…" + end


def wrap_words(words: Iterable[str], width: int, joint: str = " ", indent: str = "") -> Iterator[str]:
    """Yield lines of as many words as fit, all but the first indented; a word longer than a line is cut."""
    line, used = "", 0
    for word in words:
        start = f"{line}{joint}" if line else ""
        added = text_width(joint) + text_width(word)
        if line and used + added <= width:
            line, used = start + word, used + added
            continue
        if line:
            yield line
        line = shorten(f"{indent if start else ''}{word}", width)
        used = text_width(line)
    if line:
        yield line


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: `1 prompt`, `1,200 prompts`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_short_number(number: int | None) -> str:
    """Return a count in few characters: 950, 12.7k, 3.1M."""
    if number is None:
        return "-"
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if number >= size:
            scaled = number / (1000 if unit == "k" else size)
            return f"{scaled:.1f}{unit}" if scaled < 100 else f"{scaled:.0f}{unit}"  # noqa: PLR2004 - three digits
    return str(number)


# Sessions and projects

WHEN, AGENT, PROJECT, NUMBER, TOKENS, ID = 10, 6, 12, 5, 7, 8
NARROWEST_TITLE = 12
ROW = f"%-{WHEN}s %-{AGENT}s %s %s %{NUMBER}s %{TOKENS}s  %-{ID}s"
_HASH_LENGTH = 64


def format_session_table(sessions: Sequence[SessionRow], columns: int) -> Iterator[str]:
    """Yield a heading and a line per conversation; subagents are counted in their parent's line.

    The id is the start of the agent's own: enough for `retold show`.
    """
    width = max(NARROWEST_TITLE, columns - (WHEN + AGENT + PROJECT + NUMBER + TOKENS + ID + 7))
    project, title = fit_width("project", PROJECT), fit_width("title", width)
    yield ROW % ("when", "agent", project, title, "msgs", "tokens", "id")
    projects: dict[tuple[str | None, ...], str] = {}
    for row in sessions:
        (
            agent,
            kind,
            root,
            native_key,
            project_hash,
            title,
            count,
            total,
            estimated,
            agents,
            native_id,
            day,
        ) = row
        place = root, project_hash, native_key
        if place not in projects:
            projects[place] = fit_width(project_name(*place), PROJECT)
        yield ROW % (
            day or "-",
            agent,
            projects[place],
            fit_width(_session_title(title, kind, agents), width),
            count,
            format_short_number(total) + ("~" if estimated else ""),
            native_id[:ID] if native_id else "-",
        )


def _session_title(title: str | None, kind: str, agents: int) -> str:
    text = title or "(no prompt is left)"
    if kind == "prompts-only" and title:
        text = f"(only prompts left) {text}"
    if agents:
        text += f" +{agents} agent{'s' if agents > 1 else ''}"
    return text


def project_name(root: str | None, project_hash: str | None, native_key: str | None) -> str:
    """Return the last name of the root, else the first 8 characters of the hash."""
    if root:
        return folder_name(root) or root
    return (project_hash or native_key or "-")[:8]


def format_project(project: ProjectSummary) -> str:
    """Return a project on one line: its name, how many sessions, when last, its root and the evidence for it."""
    root = f"{project.root} ({project.evidence})" if project.root else "root unknown"
    return f"{fit_width(project.name, 20)} {project.sessions:>5}  {format_day_text(project.last_at)}  {root}"


def project_names(roots: Iterable[str]) -> dict[str, str]:
    """Return for each root its last name, with as much of the path before it as distinguishes it from the others."""
    roots = list(dict.fromkeys(roots))
    names = {root: _path_end(root, 1) for root in roots}
    deepest = max((min(root.replace("\\", "/").count("/"), LONGEST_NAME) for root in roots), default=0)
    for parts in range(2, 2 + deepest):
        ambiguous = list(_ambiguous_roots(names))
        if not ambiguous:
            break
        names |= {root: _path_end(root, parts) for root in ambiguous}
    return names


def _ambiguous_roots(names: dict[str, str]) -> Iterator[str]:
    by_name: dict[str, list[str]] = {}
    for root, name in names.items():
        by_name.setdefault(name, []).append(root)
    for roots in by_name.values():
        if len(roots) > 1:
            yield from roots


def _path_end(root: str, parts: int) -> str:
    if len(root) == _HASH_LENGTH and not set(root) - set("0123456789abcdef"):
        return root[:8] if parts == 1 else root
    if parts == 1:
        return folder_name(root) or root
    return "/".join(root.replace("\\", "/").rstrip("/").split("/")[-parts:])


# Times, in the time zone of this machine

DAY, MINUTES, SECONDS = 10, 16, 19
"""Lengths of a time as text: to the day, to the minute, to the second."""
_HOUR_SECONDS = 3600
_AGES = ((365 * 86_400, "y"), (30 * 86_400, "mo"), (7 * 86_400, "w"), (86_400, "d"), (3600, "h"), (60, "m"))


def format_day(at: datetime, *, is_utc: bool = False) -> str:
    """Return the day of a time, `2026-01-27`; in UTC for programs."""
    return _in_zone(at, is_utc=is_utc).isoformat()[:DAY]


def format_day_text(at: str | None) -> str:
    """Return the local day of a time that is given as ISO 8601 in UTC; `-` for None."""
    from retold.search.dates import to_datetime  # noqa: PLC0415 - a list has its days from the archive

    moment = to_datetime(at)
    return (at or "-")[:DAY] if moment is None else format_day(moment)


def format_minute(at: datetime) -> str:
    """Return a time to the minute: `2026-01-27 15:21`."""
    return _in_zone(at).isoformat(" ")[:MINUTES]


def format_second(at: datetime) -> str:
    """Return a time to the second: `2026-01-27 15:21:04`."""
    return _in_zone(at).isoformat(" ")[:SECONDS]


def format_moment(at: datetime, *, is_utc: bool = False) -> str:
    """Return a time to the minute with its zone, `2026-01-27 07:21 PST`; in UTC for programs."""
    return f"{_in_zone(at, is_utc=is_utc).isoformat(' ')[:MINUTES]} {zone_at(at, is_utc=is_utc)}"


def format_time(at: datetime, since: datetime | None, length: int = MINUTES) -> str:
    """Return the time of day, with the day before it unless that is the day of `since`."""
    text = _in_zone(at).isoformat(" ")[:length]
    return text[DAY + 1 :] if since is not None and text[:DAY] == format_day(since) else text


def format_period(start: datetime, end: datetime | None, *, has_zone: bool = True) -> str:
    """Return a start and an end; the day and the name of the zone stand once if both have the same."""
    last = start if end is None or end <= start else end
    zones = [f" {zone_at(at)}" if has_zone else "" for at in (start, last)]
    if last is start:
        return format_minute(start) + zones[0]
    return f"{format_minute(start)}{zones[0] if zones[0] != zones[1] else ''} to {format_time(last, start)}{zones[1]}"


def format_age(at: str | None, now: datetime) -> str:
    """Return how long ago a time was, `5h`, `3d` or `2mo`; the time is given as ISO 8601 in UTC."""
    from datetime import UTC, datetime  # noqa: PLC0415 - few commands show ages

    if at is None:
        return "-"
    seconds = (now - datetime.fromisoformat(at).astimezone(UTC)).total_seconds()
    return next((f"{int(seconds // size)}{unit}" for size, unit in _AGES if seconds >= size), "now")


def _in_zone(at: datetime, *, is_utc: bool = False) -> datetime:
    from retold.search.dates import to_local, to_utc  # noqa: PLC0415 - a list has its days from the archive

    return to_utc(at) if is_utc else to_local(at)


def zone_at(at: datetime, *, is_utc: bool = False) -> str:
    """Return the name of the zone at a time: `UTC`, `PST`, or `UTC+05:45` for a zone without a name."""
    return _zone_label(_in_zone(at, is_utc=is_utc).tzname() or "UTC")


def zone_names() -> str:
    """Return the names of the zone in a year: `UTC`, or `PST/PDT` if clocks change."""
    names = time.tzname if time.daylight else time.tzname[:1]
    return "/".join(dict.fromkeys(map(_zone_label, names)))


def zone_name(*, is_utc: bool) -> str:
    """Return the name and offset of the zone in which days begin: `UTC`, or `PST (UTC-08:00)`."""
    now = time.localtime()
    if is_utc or now.tm_zone == "UTC":
        return "UTC"
    hours, rest = divmod(abs(now.tm_gmtoff), _HOUR_SECONDS)
    sign = "-" if now.tm_gmtoff < 0 else "+"
    return f"{now.tm_zone} (UTC{sign}{hours:02d}:{rest // 60:02d})"


def _zone_label(name: str) -> str:
    return f"UTC{name[:3]}:{name[3:] or '00'}" if name[:1] in ("+", "-") else name

"""How answers look: our templates, beside those in which conversations are exported, and the files that go with them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined

from retold.export.html.page import OURS as EXPORTED
from retold.export.html.page import seen
from retold.export.text.numbers import count, money, share, span
from retold.export.text.times import day, minute
from retold.search import dates
from retold.search.dates import local
from retold.web.auth import STATIC

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_DAYS = 14
"""For so long it is told how many days ago something was; then the day itself."""


def ago(at: datetime | None, now: datetime | None = None) -> str:
    """Return how long ago something was: `just now`, `5 min ago`, `yesterday`, `3 days ago`, `2026-01-27`."""
    if at is None:
        return ""
    here = local(now or dates.now())
    then = local(at)
    seconds = (here - then).total_seconds()
    if 0 <= seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min ago" if seconds >= _MINUTE else "just now"
    days = (here.date() - then.date()).days
    if days == 0 and seconds >= 0:
        return f"{int(seconds // _HOUR)} h ago"
    if days == 1:
        return "yesterday"
    return f"{days} days ago" if 1 < days <= _DAYS else day(at)


def local_time(at: datetime | None) -> str:
    """Return day and time in the machine's zone."""
    return "" if at is None else minute(at)


def local_day(at: datetime | None) -> str:
    """Return the day in the machine's zone."""
    return "" if at is None else day(at)


class Way(NamedTuple):
    """A page, and how to get there."""

    path: str
    name: str
    key: str
    """Behind `g`, on the keyboard."""
    also: str
    """By what else it is found."""


WAYS = (
    Way("/", "Sessions", "s", "all conversations list"),
    Way("/projects", "Projects", "p", "folders roots"),
    Way("/files", "Files", "f", "files touched changed"),
    Way("/spend", "Spend", "m", "money cost tokens usage price"),
    Way("/tools", "Tools", "t", "tools errors"),
    Way("/health", "Health", "h", "doctor lost restore archive problems"),
)


_HERE = Path(__file__).parent
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@cache
def templates() -> Environment:
    """Return the templates, made ready once."""
    made = Environment(
        loader=ChoiceLoader([FileSystemLoader(_HERE / "templates"), FileSystemLoader(EXPORTED)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=seen,
    )
    made.globals |= {"address": address, "static": static_address, "ways": WAYS}
    made.filters |= {
        "ago": ago, "count": count, "day": local_day, "money": money, "share": share, "span": span, "time": local_time,
    }  # fmt: skip
    return made


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """Return a page, or a piece of one."""
    return templates().get_template(template).render(values)


def address(path: str, /, **query: object) -> str:
    """Return an address of ours; what is None or empty is left out."""
    asked = [(name, str(value)) for name, value in query.items() if value not in (None, "")]
    return f"{path}?{urlencode(asked, errors='replace')}" if asked else path


class Static:
    """The files that pages are shown with: read once, below a name that changes with them, so that browsers may keep them."""

    def __init__(self) -> None:
        found = sorted((_HERE / "static").iterdir())
        self.files = {path.name: (_TYPES[path.suffix], _content(path)) for path in found}
        """Media type and content, by name."""
        contents = b"".join(content for _, content in self.files.values())
        self.edition = hashlib.sha256(contents).hexdigest()[:12]


def _content(path: Path) -> bytes:
    if path.suffix != ".css":
        return path.read_bytes()
    # Colours, and what conversations look like, are those of an export.
    return templates().from_string(path.read_text(encoding="utf-8")).render().encode()


@cache
def static() -> Static:
    """Return the files, made ready once."""
    return Static()


def static_address(name: str) -> str:
    """Return the address of a file: scripts import each other by their names, and find those of the same edition."""
    return f"{STATIC}{static().edition}/{name}"

"""The interface of a page (`PageRequest`, `TemplatePage`, `Download`, `Redirect`, `PageRoute`), the templates and static files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined

from retold.archive.store import Store
from retold.export.html.page import TEMPLATES as EXPORTED
from retold.export.html.page import escape_value
from retold.export.text.amounts import format_count, format_duration, format_money, format_share
from retold.export.text.formatting import format_day, format_minute
from retold.search import dates
from retold.search.dates import to_local
from retold.search.scan_job import ScanJob, ScanResult
from retold.web.auth import STATIC


class PageRequest(msgspec.Struct, frozen=True):
    """A request as a page gets it. Nothing in it has been checked, and all of it may be hostile."""

    path: str
    query: Mapping[str, Sequence[str]]
    form: Mapping[str, str]
    cookies: Mapping[str, str]
    form_token: str
    """Token that the forms of the page must carry."""
    scan_result: ScanResult | None = None
    """Result of the scan that the page's route requested."""

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a name in the query."""
        values = self.query.get(name)
        return values[0] if values else default

    def number(self, name: str, default: int, most: int) -> int:
        """Return a number of the query, at most `most`; the default if it is missing or malformed."""
        text = self.get(name)
        return min(int(text), most) if text.isascii() and text.isdecimal() and len(text) <= 12 else default  # noqa: PLR2004 - digits


class TemplatePage(msgspec.Struct, frozen=True):
    """A page or a piece of one: a template and its values."""

    template: str
    values: Mapping[str, Any]
    status: int = 200


class Download(msgspec.Struct, frozen=True):
    """A file to be saved."""

    name: str
    media_type: str
    pieces: Iterable[bytes]


class Redirect(msgspec.Struct, frozen=True):
    """A redirect to another page of this server."""

    path: str
    query: Mapping[str, str]


class NotFound(Exception):  # noqa: N818 - the name of the HTTP status
    """The requested thing does not exist; the message names it."""


Answer = TemplatePage | Download | Redirect
Handler = Callable[[PageRequest, Store], Answer]


class PageRoute(msgspec.Struct, frozen=True):
    """The handler of a path. A POST handler may change something."""

    path: str
    answer: Handler
    is_post: bool = False
    scan: Callable[[PageRequest], ScanJob | None] | None = None
    """Returns the scan of all text that another process must make before the page can answer."""


_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_DAYS = 14
"""Days up to which a time is shown as `3 days ago`; older ones are shown as a day."""


def format_ago(at: datetime | None, now: datetime | None = None) -> str:
    """Return the age of a time: `just now`, `5 min ago`, `yesterday`, `3 days ago`, `2026-01-27`."""
    if at is None:
        return ""
    here = to_local(now or dates.now())
    then = to_local(at)
    seconds = (here - then).total_seconds()
    if 0 <= seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min ago" if seconds >= _MINUTE else "just now"
    days = (here.date() - then.date()).days
    if days == 0 and seconds >= 0:
        return f"{int(seconds // _HOUR)} h ago"
    if days == 1:
        return "yesterday"
    return f"{days} days ago" if 1 < days <= _DAYS else format_day(at)


def local_time(at: datetime | None) -> str:
    """Return a time in the machine's zone; empty for None."""
    return "" if at is None else format_minute(at)


def local_day(at: datetime | None) -> str:
    """Return a day in the machine's zone; empty for None."""
    return "" if at is None else format_day(at)


class NavigationItem(NamedTuple):
    """A page of the navigation."""

    path: str
    name: str
    key: str
    """The key that opens it, after `g`."""
    also: str
    """Further words by which the palette finds it."""


NAVIGATION = (
    NavigationItem("/", "Sessions", "s", "all conversations list"),
    NavigationItem("/projects", "Projects", "p", "folders roots"),
    NavigationItem("/files", "Files", "f", "files touched changed"),
    NavigationItem("/spend", "Spend", "m", "money cost tokens usage price"),
    NavigationItem("/tools", "Tools", "t", "tools errors"),
    NavigationItem("/health", "Health", "h", "doctor lost restore archive problems"),
)


_HERE = Path(__file__).parent
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@cache
def templates() -> Environment:
    """Return the templates, compiled once."""
    environment = Environment(
        loader=ChoiceLoader([FileSystemLoader(_HERE / "templates"), FileSystemLoader(EXPORTED)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=escape_value,
    )
    environment.globals |= {"address": address, "static": static_address, "ways": NAVIGATION}
    environment.filters |= {
        "ago": format_ago, "count": format_count, "day": local_day, "money": format_money, "share": format_share, "span": format_duration, "time": local_time,
    }  # fmt: skip
    return environment


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return a rendered template."""
    return templates().get_template(template).render(values)


def address(path: str, /, **query: object) -> str:
    """Return an address of this server; query values that are None or empty are left out."""
    values = [(name, str(value)) for name, value in query.items() if value not in (None, "")]
    return f"{path}?{urlencode(values, errors='replace')}" if values else path


class StaticFile(NamedTuple):
    """A static file in memory."""

    media_type: str
    content: bytes


class StaticFiles:
    """Style sheets, scripts and icons. Their path has a hash of all of them, so that browsers may keep them for ever."""

    def __init__(self) -> None:
        paths = sorted((_HERE / "static").iterdir())
        self.files = {path.name: StaticFile(_TYPES[path.suffix], _content(path)) for path in paths}
        contents = b"".join(file.content for file in self.files.values())
        self.edition = hashlib.sha256(contents).hexdigest()[:12]


def _content(path: Path) -> bytes:
    if path.suffix != ".css":
        return path.read_bytes()
    # Style sheets are templates: they include the colours and the styles of exported conversations.
    return templates().from_string(path.read_text(encoding="utf-8")).render().encode()


@cache
def static_files() -> StaticFiles:
    """Return the static files, read once."""
    return StaticFiles()


def static_address(name: str) -> str:
    """Return the address of a static file. Scripts import each other by relative names, within the same edition."""
    return f"{STATIC}{static_files().edition}/{name}"

"""What a page is asked, and what it answers: values, so that a page knows nothing of the server."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from retold.archive.store import Store
from retold.search.scan_job import ScanJob, Scanned


class PageRequest(msgspec.Struct, frozen=True):
    """A request, as a page gets it: nothing in it was looked at, and all of it may be an enemy's."""

    path: str
    query: Mapping[str, Sequence[str]]
    form: Mapping[str, str]
    cookies: Mapping[str, str]
    form_token: str
    """What the forms of the answer must carry."""
    scanned: Scanned | None = None
    """What a page asked to be looked for ahead of its answer."""

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a name in the address."""
        values = self.query.get(name)
        return values[0] if values else default

    def number(self, name: str, default: int, most: int) -> int:
        """Return a number in the address, from 0 to `most`; what is none is the default."""
        text = self.get(name)
        return min(int(text), most) if text.isascii() and text.isdecimal() and len(text) <= 12 else default  # noqa: PLR2004 - digits


class TemplatePage(msgspec.Struct, frozen=True):
    """A page, or a piece of one: a template and what it is given."""

    template: str
    values: Mapping[str, Any]
    status: int = 200


class Download(msgspec.Struct, frozen=True):
    """A file to be kept by whoever asked."""

    name: str
    media_type: str
    pieces: Iterable[bytes]


class Redirect(msgspec.Struct, frozen=True):
    """Another page that answers: of this server always."""

    path: str
    query: Mapping[str, str]


class NotFound(Exception):  # noqa: N818 - it says what the thing is
    """What was asked for is not there; the text says what."""


Answer = TemplatePage | Download | Redirect
Handler = Callable[[PageRequest, Store], Answer]


class PageRoute(msgspec.Struct, frozen=True):
    """What answers at an address; asked by POST, it may change something."""

    path: str
    answer: Handler
    is_post: bool = False
    scan: Callable[[PageRequest], ScanJob | None] | None = None
    """What has to be looked for in all text, ahead of the answer, by another process."""

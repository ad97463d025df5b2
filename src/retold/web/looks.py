"""How answers look: our templates, beside those in which conversations are exported, and the files that go with them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined

from retold.export.html.page import OURS as EXPORTED
from retold.export.html.page import seen
from retold.export.text.numbers import count, money, share, span
from retold.web.clock import ago, local_day, local_time
from retold.web.guard import STATIC
from retold.web.navigation import WAYS

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

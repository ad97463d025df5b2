"""Templates and the style sheet: ours, or those of a folder that win over them."""

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, FileSystemLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from retold.export.html.facts import left_out
from retold.export.html.runs import runs
from retold.export.html.signs import show_control_chars

OURS = Path(__file__).parent / "templates"
PIECE = 65_536
"""How many characters are written at a time."""


class Looks:
    """How pages look: templates that escape by themselves, and a policy under which a browser runs and loads nothing."""

    def __init__(self, folder: Path | None) -> None:
        loaders: list[BaseLoader] = [FileSystemLoader(folder)] if folder else []
        # Somebody may use a look that another made: a template can tell everything, and reach nothing else.
        self._templates = ImmutableSandboxedEnvironment(
            loader=ChoiceLoader([*loaders, FileSystemLoader(OURS)]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=seen,
        )
        style = self._templates.get_template("style.css").render().replace("</", "<\\/")
        digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
        self._templates.globals |= {
            "policy": f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'",
            "left_out": left_out,
            "runs": runs,
            "style": Markup(style),  # noqa: S704 - ours, or the user's own
        }

    def pieces(self, name: str, **given: Any) -> Iterator[bytes]:
        """Yield a page as it comes into being: what it is told is asked for only then."""
        return _encoded(self._templates.get_template(name).generate(**given))


@lru_cache(maxsize=4)
def looks(folder: Path | None) -> Looks:
    """Return the looks of a folder, or ours: templates are made ready once for many pages."""
    return Looks(folder)


def seen(value: Any) -> Any:
    """Let no text into a page with characters that hide, whatever template it goes through."""
    return show_control_chars(value) if type(value) is str else value


def _encoded(texts: Iterable[str]) -> Iterator[bytes]:
    held: list[str] = []
    size = 0
    for text in texts:
        held.append(text)
        size += len(text)
        if size >= PIECE:
            yield "".join(held).encode()
            held, size = [], 0
    yield "".join(held).encode()

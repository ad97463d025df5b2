"""Foreign words inside a line of our own in a Markdown page."""

import html
import re

from retold.export.names import clean

_BACKTICKS = re.compile("`+")
_MARKUP = re.compile(r"([\\`*_\[\]<>&~|$])")


def as_words(text: str) -> str:
    """Return text on one line, in which nothing is markup."""
    return _MARKUP.sub(r"\\\1", clean(text))


def as_code(text: str) -> str:
    """Return text on one line as code, whatever backticks it has."""
    line = clean(text)
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(line)), default=0))
    blank = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{blank}{line}{blank}{fence}"


def as_html(text: str) -> str:
    """Return text on one line for a line of HTML."""
    return html.escape(clean(text))

"""Foreign words inside a line of our own in a Markdown page."""

import html
import re

from retold.export.names import clean

_BACKTICKS = re.compile("`+")
_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,500}?)(?<!`)\1(?!`)")
_LIVELY = re.compile(r"([\\`<]|\](?=[(\[]))")
"""What begins HTML, or makes a link or a picture of what stands in brackets before it."""
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


def as_prose(text: str) -> str:
    """Return words on one line as they were written, code and emphasis too; nothing in them is a link, a picture or HTML."""
    pieces: list[str] = []
    place, line = 0, clean(text)
    for span in _SPAN.finditer(line):
        pieces += (_LIVELY.sub(r"\\\1", line[place : span.start()]), as_code(span[2]))
        place = span.end()
    return "".join((*pieces, _LIVELY.sub(r"\\\1", line[place:])))


def as_html(text: str) -> str:
    """Return text on one line for a line of HTML."""
    return html.escape(clean(text))

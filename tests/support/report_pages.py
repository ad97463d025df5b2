"""Parses report pages: their sections, tables, cards and links."""

import re
from html import unescape
from pathlib import Path

from retold.demo.home import make_home
from support.person import Person

_TAGS = re.compile(r"<[^>]*>")
_LINK = re.compile(r'href="([^"]*)"')


def archive_demo(folder: Path) -> Person:
    """Return a person with an archive of the demo's conversations."""
    from datetime import UTC, datetime  # noqa: PLC0415 - only this function needs the time

    made = make_home(folder / "demo", datetime.now(UTC))
    person = Person(made.folder / "home", made.folder / "retold")
    person.sync()
    return person


def section(page: str, name: str) -> str:
    """Return the section of a page whose heading has this id."""
    found = re.search(rf'<section[^>]* aria-labelledby="{name}">(.*?)</section>', page, re.DOTALL)
    assert found, f"no section {name}"
    return found[1]


def table_rows(part: str) -> list[list[str]]:
    """Return the cell texts of each table row in a part of a page, without header rows."""
    bodies = re.findall(r"<tbody>(.*?)</tbody>", part, re.DOTALL)
    found = re.findall(r"<tr\b[^>]*>(.*?)</tr>", "".join(bodies), re.DOTALL)
    return [
        [visible_text(cell) for cell in re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in found
    ]


def visible_text(html: str) -> str:
    """Return the text of some HTML, without tags and SVG pictures."""
    without = re.sub(r"<svg.*?</svg>", "", html, flags=re.DOTALL)
    return " ".join(unescape(_TAGS.sub(" ", without)).split())


def page_links(part: str) -> list[str]:
    """Return the link targets in a part of a page, in order."""
    return [unescape(link) for link in _LINK.findall(part)]


def summary_cards(page: str) -> dict[str, str]:
    """Return the figures at the top of a page, by name."""
    found = re.findall(r'<div class="card"><dt>(.*?)</dt>\s*<dd>(.*?)</dd>', page, re.DOTALL)
    return {visible_text(name): visible_text(told) for name, told in found}

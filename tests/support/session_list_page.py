"""Parses the list of sessions on the local web page."""

import re
from html import unescape

_ROW = re.compile(
    r'<li class="row" data-row data-key="([^"]*)">(.*?)(?=<li class="row"|<li class="more"|</ol>|\Z)',
    re.DOTALL,
)
_FACET = re.compile(r'<a href="([^"]*)" data-facet="(\w+)=([^"]*)".*?>(\d[\d,]*)</span></a>')
_COUNT = re.compile(r'<p role="status" aria-live="polite">([\d,]+)')


def list_rows(text: str) -> dict[str, str]:
    """Return the text of each row, without tags, by key."""
    plain = ((key, re.sub(r"<[^>]+>", " ", html)) for key, html in _ROW.findall(text))
    return {unescape(key): " ".join(unescape(html).split()) for key, html in plain}


def session_count(text: str) -> int:
    found = _COUNT.search(text)
    assert found is not None
    return int(found[1].replace(",", ""))


def facets(text: str) -> list[tuple[str, str, str, int]]:
    """Return the link, name, value and count of every facet."""
    return [
        (unescape(href), name, unescape(value), int(number.replace(",", "")))
        for href, name, value, number in _FACET.findall(text)
    ]

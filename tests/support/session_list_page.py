"""What stands in a list of sessions that the local page shows."""

import re
from html import unescape

_ROW = re.compile(
    r'<li class="row" data-row data-key="([^"]*)">(.*?)(?=<li class="row"|<li class="more"|</ol>|\Z)',
    re.DOTALL,
)
_FACET = re.compile(r'<a href="([^"]*)" data-facet="(\w+)=([^"]*)".*?>(\d[\d,]*)</span></a>')
_COUNT = re.compile(r'<p role="status" aria-live="polite">([\d,]+)')


def list_rows(text: str) -> dict[str, str]:
    """What stands in each row, without tags, by key."""
    plain = ((key, re.sub(r"<[^>]+>", " ", html)) for key, html in _ROW.findall(text))
    return {unescape(key): " ".join(unescape(html).split()) for key, html in plain}


def session_count(text: str) -> int:
    found = _COUNT.search(text)
    assert found is not None
    return int(found[1].replace(",", ""))


def facets(text: str) -> list[tuple[str, str, str, int]]:
    """Address, kind, value and count of all that can be chosen."""
    return [
        (unescape(href), name, unescape(value), int(number.replace(",", "")))
        for href, name, value, number in _FACET.findall(text)
    ]

"""Secrets in blocks of lines: the rest of a private key, Kubernetes secrets, PuTTY keys, JSON web keys, `.pgpass`."""

import re
from collections.abc import Iterable, Iterator

from retold.redaction.encoded import decoded
from retold.redaction.rules import Budget, Places
from retold.redaction.secrets import Secret, is_argument

_END = "-----end "
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_PEM_LINE = re.compile(r"[ \t>|+\d:→]{0,16}[A-Za-z0-9+/=]{4,100}[ \t\r]{0,4}$")
_MOST_LINES, _LEAST_LENGTH, _LONGEST_LINE = 200, 40, 130
_MANIFESTS = ("kind: secret", '"kind": "secret"', '"kind":"secret"')
_BETWEEN_MANIFESTS = "\n---"
_LONGEST_MANIFEST = 8_000
_ENTRY = re.compile(r"[\w.-]{1,80}\"?: {0,4}[\"']?([A-Za-z0-9+/]{8,4000}={0,2})(?=[\"',\s}]|$)")
_PUTTY = re.compile(r"(?i)private-lines: \d{1,3}\s{1,4}((?:[A-Za-z0-9+/=]{1,64}\s{1,2}){1,200})")
_WEB_KEY = re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\"\s?:\s?\"([A-Za-z0-9_-]{20,1000})\"")
_LONGEST_WEB_KEY = 4_000
_PGPASS = re.compile(
    r"[^\s:#\"'`]{1,200}:(?:\d{2,5}|\*):[^\s:]{1,100}:[^\s:]{1,100}:(\S{1,200})$", re.MULTILINE
)
_LONGEST_HOST = 200
_KTY = "kty"
_PORTS = (":5432:", ":*:")

ANCHORS = (_END, *_MANIFESTS, "private-lines", _KTY, *_PORTS)
"""What to look for in the text in lower case."""


def blocked(text: str, low: str, seen: Places, budget: Budget) -> Iterator[Secret]:
    """Yield the secrets in blocks of lines; `low` is the text in lower case, `seen` where the words stand."""
    for found in _matches(_PEM_END, text, seen.get(_END, ()), budget):
        yield from _lines_before(text, found.start(), budget)
    for found in _matches(_PUTTY, text, seen.get("private-lines", ()), budget):
        yield Secret(*found.span(1), "private-key")
    manifests = sorted(place for anchor in _MANIFESTS for place in seen.get(anchor, ()))
    yield from _manifests(text, low, manifests, budget)
    yield from _web_keys(text, seen.get(_KTY, ()), budget)
    yield from _password_files(text, seen, budget)


def _matches(
    pattern: re.Pattern[str], text: str, places: Iterable[int], budget: Budget
) -> Iterator[re.Match[str]]:
    for place in places:
        found = pattern.match(text, place)
        budget.spend(found.end() - place if found else 1)
        if found:
            yield found


def _lines_before(text: str, end: int, budget: Budget) -> Iterator[Secret]:
    """Yield the lines of base64 before the last line of a private key."""
    start = end
    for _ in range(_MOST_LINES):
        first = max(0, start - _LONGEST_LINE)
        line = text.rfind("\n", first, max(0, start - 1)) + 1
        budget.spend(start - first)
        if (not line and first) or start == 0 or not _PEM_LINE.match(text, line, start - 1):
            break
        start = line
    if end - start >= _LEAST_LENGTH:
        yield Secret(start, end - 1, "private-key")


def _manifests(text: str, low: str, places: Iterable[int], budget: Budget) -> Iterator[Secret]:
    """Yield the values in Kubernetes secrets that are base64 of a text."""
    done = 0
    for place in places:
        if place < done:
            continue
        start = max(done, place - _LONGEST_MANIFEST, low.rfind(_BETWEEN_MANIFESTS, done, place))
        after = low.find(_BETWEEN_MANIFESTS, place, place + _LONGEST_MANIFEST)
        done = after if after >= 0 else min(len(text), place + _LONGEST_MANIFEST)
        budget.spend(done - start)
        for entry in _ENTRY.finditer(text, max(start, low.find("data", start, done)), done):
            if decoded(entry[1]):
                yield Secret(*entry.span(1), "secret")


def _web_keys(text: str, places: Iterable[int], budget: Budget) -> Iterator[Secret]:
    """Yield the private members of JSON web keys."""
    done = 0
    for place in places:
        if place < done:
            continue
        start = max(done, text.rfind("{", max(0, place - _LONGEST_WEB_KEY), place))
        after = text.find("}", place, place + _LONGEST_WEB_KEY)
        done = after if after >= 0 else min(len(text), place + _LONGEST_WEB_KEY)
        budget.spend(done - start)
        for member in _WEB_KEY.finditer(text, start, done):
            yield Secret(*member.span(1), "secret")


def _password_files(text: str, seen: Places, budget: Budget) -> Iterator[Secret]:
    """Yield the passwords in lines of `.pgpass`."""
    for port in _PORTS:
        for place in seen.get(port, ()):
            start = max(0, place - _LONGEST_HOST)
            start = max(start, text.rfind("\n", start, place) + 1)
            found = _PGPASS.match(text, start)
            budget.spend(found.end() - start if found else place - start + 1)
            if found and is_argument(found[1]):
                yield Secret(*found.span(1), "password")

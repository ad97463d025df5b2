"""Secrets that their surroundings give away: headers, addresses, PEM blocks, and the flags of some programs."""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from retold.redaction.budget import Budget
from retold.redaction.finding import Finding
from retold.redaction.judgement import is_password, is_random, is_stand_in


class _Rule(NamedTuple):
    """What to look for in the text in lower case, the secret around it, and what it has to look like."""

    anchor: str
    kind: str
    pattern: re.Pattern[str]
    is_meant: Callable[[str], bool]


def _is_credential(value: str) -> bool:
    """Whether a value is the base64 of a user and a password."""
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_any(value: str) -> bool:
    return not is_stand_in(value)


def _is_long_or_random(value: str) -> bool:
    is_long = len(value) >= _SHORTEST_TOKEN and any(sign.isdigit() for sign in value)
    return not is_stand_in(value) and (is_long or is_random(value))


def _is_bare_password(value: str) -> bool:
    return is_password(value, is_quoted=False)


_OPAQUE = r"([A-Za-z0-9_.~+/=-]{12,}(?<![.]))"
_ARGUMENT = r"(?:'([^'\n]+)'|\"([^\"\n]+)\"|([^\s'\"]+))"

_RULES = (
    _Rule("bearer", "bearer-token", re.compile(r"(?i)bearer(?:\s+|%20|\+)" + _OPAQUE), _is_long_or_random),
    _Rule("basic", "basic-auth", re.compile(r"(?i)basic\s+([A-Za-z0-9+/]{8,}={0,2})"), _is_credential),
    _Rule(
        "auth",
        "bearer-token",
        re.compile(
            r"(?i)authorization\\*[\"']?\s*[:=,]\s*+\\*+[\"']?+\s*+(?:(?:token|apikey|key|bot|ghtoken)\s*+)?"
            + _OPAQUE
        ),
        _is_long_or_random,
    ),
    _Rule(
        "auth",
        "basic-auth",
        re.compile(r"(?i)auth\\*\"\s*:\s*\\*\"([A-Za-z0-9+/]{8,}={0,2})\\*\""),
        _is_credential,
    ),
    _Rule(
        "auth", "basic-auth", re.compile(r"(?i)(?<=_)auth\s*=\s*\"?([A-Za-z0-9+/]{8,}={0,2})"), _is_credential
    ),
    _Rule("sig=", "azure-key", re.compile(r"(?i)sig=([A-Za-z0-9%+/=]{40,120})"), _is_any),
    _Rule(
        "identified",
        "password",
        re.compile(r"(?i)identified\s+(?:with\s+\S+\s+)?by\s+\\*['\"]([^'\"\n\\]+)"),
        _is_any,
    ),
    _Rule("sshpass", "password", re.compile(r"(?i)sshpass\s+-p\s*" + _ARGUMENT), _is_any),
    _Rule(
        "redis-cli", "password", re.compile(r"(?i)redis-cli\b[^\n|;&]{0,200}?\s-a\s+" + _ARGUMENT), _is_any
    ),
    _Rule(
        "mysql",
        "password",
        re.compile(r"(?i)mysql(?:dump|admin)?\b[^\n|;&]{0,200}?\s-p(?=\S)(?!assword\b)" + _ARGUMENT),
        _is_bare_password,
    ),
    _Rule(
        "curl",
        "password",
        re.compile(
            r"(?i)curl\b[^\n|;]{0,400}?\s(?:-u|--user|--proxy-user)[ =]\\*[\"']?[^\s:\"']+:([^\s\"'\\]+)"
        ),
        _is_any,
    ),
)

_BY_ANCHOR = {anchor: tuple(rules) for anchor, rules in groupby(_RULES, attrgetter("anchor"))}

ANCHORS = (*_BY_ANCHOR, "cookie", "-b ", "://", "-----begin ")
"""What to look for in the text in lower case."""

_ADDRESS = re.compile(
    r"://(?:(?P<user>[^\s/:@\"'`<>\\?#]*):(?P<password>[^\s/\"'`<>\\]{3,200})|(?P<token>[A-Za-z0-9_-]{16,200}))@(?=[\w.\[-])"
)
_PEM = re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(
    r"(?:\\+[nrt]|[\s>|+]|\d{1,6}(?:\t|[:|] ?|→)|(?:Proc-Type|DEK-Info|Version|Comment): ?[^\n\\]*|[A-Za-z0-9+/=]{20,}|[A-Za-z0-9+/]*={0,2}(?=\s|\\|\"|'|$))+"
)
_COOKIES = re.compile(
    r"(?i)(?:set-)?cookie\\*[\"']?\s*[:=,]\s*\\*[\"']?([^\r\n\"']{4,8000})|(?:-b|--cookie)[ =]\\*[\"']([^\r\n\"']{4,8000})"
)
_PAIR = re.compile(r"[^\s=;,]++(?:=([^\s;,\\]++))?")
"""A cookie, or a word without a value, which is passed over as a whole."""
_ID = re.compile(r"[A-Za-z0-9%_.~+/=-]{16,}$")
_LONGEST_BLOCK = 20_000
_JUDGED = 8
"""How many times a value is read until it is judged."""
_SHORTEST_BODY = 40
_SHORTEST_TOKEN, _SHORTEST_COOKIE = 20, 24


def surrounded(text: str, low: str, budget: Budget) -> Iterator[Finding]:
    """Yield what stands in a header, an address, a PEM block or behind a flag; `low` is the text in lower case."""
    for anchor, rules in _BY_ANCHOR.items():
        for place in _places(low, anchor):
            for rule in rules:
                found = rule.pattern.match(text, place)
                budget.spend(_JUDGED * (found.end() - place) if found else len(anchor))
                group = found.lastindex if found else None
                if found and group and rule.is_meant(found[group]):
                    yield Finding(*found.span(group), rule.kind)
    yield from _addresses(text, budget)
    yield from _private_keys(text, budget)
    yield from _cookies(text, low, budget)


def _places(low: str, anchor: str) -> Iterator[int]:
    place = low.find(anchor)
    while place >= 0:
        yield place
        place = low.find(anchor, place + len(anchor))


def _addresses(text: str, budget: Budget) -> Iterator[Finding]:
    """Yield the passwords, and tokens in place of users, in addresses."""
    for place in _places(text, "://"):
        found = _ADDRESS.match(text, place)
        budget.spend(found.end() - place if found else 1)
        if not found:
            continue
        if found["password"] is not None and not is_stand_in(found["password"]):
            yield Finding(*found.span("password"), "url-password")
        elif found["token"] is not None and is_random(found["token"]):
            yield Finding(*found.span("token"), "url-password")


def _private_keys(text: str, budget: Budget) -> Iterator[Finding]:
    """Yield what stands between the first and the last line of a private key, or after the first, if there is no last."""
    for place in _places(text, "-----BEGIN "):
        first = _PEM.match(text, place)
        if not first:
            continue
        longest = min(first.end() + _LONGEST_BLOCK, len(text))
        last = _PEM_END.search(text, first.end(), longest)
        body = _PEM_BODY.match(text, first.end(), longest)
        budget.spend((last.end() if last else longest) - place)
        end = (
            last.start()
            if last and "-----BEGIN" not in text[first.end() : last.start()]
            else body.end()
            if body
            else 0
        )
        if end - first.end() >= _SHORTEST_BODY:
            yield Finding(first.end(), end, "private-key")


def _cookies(text: str, low: str, budget: Budget) -> Iterator[Finding]:
    """Yield the values in a header of cookies that may let somebody in."""
    for anchor in ("cookie", "-b "):
        done = 0
        for place in _places(low, anchor):
            header = _COOKIES.match(text, place) if place >= done else None
            budget.spend(header.end() - place if header else len(anchor))
            if not header:
                continue
            start, done = header.span(1 if header[1] else 2)
            for pair in _PAIR.finditer(text, start, done):
                value = pair[1]
                if value and _ID.match(value) and (is_random(value) or len(value) >= _SHORTEST_COOKIE):
                    yield Finding(*pair.span(1), "cookie")

"""Secrets that their surroundings give away: headers, addresses, PEM blocks, and the flags of some programs."""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from retold.redaction.rules import Budget, Places
from retold.redaction.secrets import Secret, is_random, is_stand_in


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


_OPAQUE = r"([A-Za-z0-9_.~+/=-]{12,}(?<![.]))"

_RULES = (
    _Rule("bearer", "bearer-token", re.compile(r"(?i)bearer(?:\s+|%20|\+)" + _OPAQUE), _is_long_or_random),
    _Rule("basic", "basic-auth", re.compile(r"(?i)basic\s+([A-Za-z0-9+/]{8,}={0,2})"), _is_credential),
    _Rule(
        "auth",
        "bearer-token",
        re.compile(
            r"(?i)authorization\\*[\"']?\s*[:=,]\s*+\\*+[\"']?+\s*+(?:(?:token|apikey|key|bot|ghtoken|ssws)\s*+)?"
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
    _Rule("auth", "service-token", re.compile(r"(?i)auth:([a-z0-9]{30})(?![a-z0-9])"), is_random),
    *(
        _Rule(
            begin,
            "aws-secret-key",
            re.compile(
                rf"{begin.upper()}[A-Z0-9]{{16}}[\"']?[ \t]{{0,8}}[,;:|\t ][ \t]{{0,8}}[\"']?([A-Za-z0-9+/]{{40}})(?![A-Za-z0-9+/=])"
            ),
            is_random,
        )
        for begin in ("akia", "asia")
    ),
    _Rule("sig=", "azure-key", re.compile(r"(?i)sig=([A-Za-z0-9%+/=]{40,120})"), _is_any),
    _Rule(
        "signature=",
        "url-password",
        re.compile(r"(?i)(?<=[?&-])signature=([A-Za-z0-9%+/=_~.-]{20,2000})"),
        _is_any,
    ),
    _Rule(
        "identified",
        "password",
        re.compile(r"(?i)identified\s+(?:with\s+\S+\s+)?by\s+\\*['\"]([^'\"\n\\]+)"),
        _is_any,
    ),
)

_AUTH = re.compile(r"auth(?:orization)?\\*[\"']?\s*[:=,]")
"""Asked first: the word is part of many names."""
_BY_ANCHOR = {anchor: tuple(rules) for anchor, rules in groupby(_RULES, attrgetter("anchor"))}

ANCHORS = (*_BY_ANCHOR, "cookie", "-b ", "://", "-----begin ")
"""What to look for in the text in lower case."""

_ADDRESS = re.compile(
    r"://(?:(?P<user>[^\s/:@\"'`<>\\?#]*):(?P<password>[^\s/\"'`<>\\]{3,200})|(?P<token>[A-Za-z0-9_-]{16,200}))@(?=[\w.\[-])"
)
_PEM = re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_PEM_PIECES = re.compile(
    r"(?:(?:\\+[nr])*[\"'][ \t]{0,8}[+.,\\]?\s{0,80}[+.]?\s{0,8}[\"'][A-Za-z0-9+/=]{16,200})+"
)
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


def surrounded(text: str, low: str, seen: Places, budget: Budget) -> Iterator[Secret]:
    """Yield what stands in a header, an address, a PEM block or behind a flag; `low` is the text in lower case, `seen` where the words stand."""
    for anchor, rules in _BY_ANCHOR.items():
        for place in seen.get(anchor, ()):
            if anchor == "auth" and not _AUTH.match(low, place):
                continue
            for rule in rules:
                found = rule.pattern.match(text, place)
                budget.spend(_JUDGED * (found.end() - place) if found else len(anchor))
                group = found.lastindex if found else None
                if found and group and rule.is_meant(found[group]):
                    yield Secret(*found.span(group), rule.kind)
    yield from _addresses(text, seen.get("://", ()), budget)
    yield from _private_keys(text, seen.get("-----begin ", ()), budget)
    yield from _cookies(text, seen, budget)


def _addresses(text: str, places: Iterable[int], budget: Budget) -> Iterator[Secret]:
    """Yield the passwords, and tokens in place of users, in addresses."""
    for place in places:
        found = _ADDRESS.match(text, place)
        budget.spend(found.end() - place if found else 1)
        if not found:
            continue
        if found["password"] is not None and not is_stand_in(found["password"]):
            yield Secret(*found.span("password"), "url-password")
        elif found["token"] is not None and is_random(found["token"]):
            yield Secret(*found.span("token"), "url-password")


def _private_keys(text: str, places: Iterable[int], budget: Budget) -> Iterator[Secret]:
    """Yield what stands between the first and the last line of a private key, or after the first, if there is no last."""
    for place in places:
        first = _PEM.match(text, place)
        if not first:
            continue
        longest = min(first.end() + _LONGEST_BLOCK, len(text))
        last = _PEM_END.search(text, first.end(), longest)
        body = _PEM_PIECES.match(text, first.end(), longest) or _PEM_BODY.match(text, first.end(), longest)
        budget.spend((last.end() if last else longest) - place)
        end = (
            last.start()
            if last and "-----BEGIN" not in text[first.end() : last.start()]
            else body.end()
            if body
            else 0
        )
        if end - first.end() >= _SHORTEST_BODY:
            yield Secret(first.end(), end, "private-key")


def _cookies(text: str, seen: Places, budget: Budget) -> Iterator[Secret]:
    """Yield the values in a header of cookies that may let somebody in."""
    for anchor in ("cookie", "-b "):
        done = 0
        for place in seen.get(anchor, ()):
            header = _COOKIES.match(text, place) if place >= done else None
            budget.spend(header.end() - place if header else len(anchor))
            if not header:
                continue
            start, done = header.span(1 if header[1] else 2)
            for pair in _PAIR.finditer(text, start, done):
                value = pair[1]
                if value and _ID.match(value) and (is_random(value) or len(value) >= _SHORTEST_COOKIE):
                    yield Secret(*pair.span(1), "cookie")

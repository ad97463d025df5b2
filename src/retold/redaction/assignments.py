"""Secrets that stand beside their name: in settings, code, JSON, flags, forms and sentences."""

import re
from collections.abc import Iterator
from functools import lru_cache

from retold.redaction.budget import Budget
from retold.redaction.finding import Finding
from retold.redaction.judgement import (
    LONGEST_PASSWORD,
    LONGEST_SECRET,
    SHORTEST_PASSWORD,
    SHORTEST_SECRET,
    is_password,
    is_random,
    is_stand_in,
)

ANCHORS = ("pass", "pwd", "secret", "token", "key", "credential", "sess", "sid", "cookie")
"""What the name of a secret has in it."""

_NAME = re.compile(
    r"(?:(?P<password>pass(?:word|wd|phrase|code)?|pwd)"
    r"|(?P<cookie>cookie|sess(?:ion)?(?:[_-]?(?:id|key|token))?|(?<![a-z0-9_-])sid)"
    r"|(?P<secret>secret|token|credential|key)"
    r"|(?P<auth>authorization))"
    r"(?:[_-]?(?:key|token|secret|base|value|string|str|raw|plain|text|prod|dev|test|live|staging|default|phrase|\d{1,2})){0,4}"
)
_QUOTES = frozenset("\"'`\\")
_NEXT = frozenset("\\\"'`])?! \t:=,>|")
"""What follows a name to which something is assigned."""
_BETWEEN = re.compile(
    r"\\*[\"'`]?\]?\)?(?:"
    r"[ \t]*(?:\?|!)?(?::[ \t]*[A-Za-z]\w*(?:<\w+>)?(?:[ \t]*\|[ \t]*\w+)?[ \t]*=|:=|=>|==?=?|!==?|:|,)[ \t]*(?:\\[nt])?"  # a = b, a: str = b
    r"|>(?=[^<\s]+</)"  # <password>b</password>
    r"|[ \t]+(?:is|was|are):?[ \t]+"  # the password is b
    r"|(?<=\w)[ \t]*\|[ \t]+|[ \t]{2,}|[ \t](?=\S)"  # | name | b |, in columns, flags
    r")(?:\[\]byte\(|[Ss]tring\(|new \w+\(|[bBrRuUfF](?=[\"']))?"
)
_QUOTED = re.compile(
    r"(?P<quote>[\"'`])(?P<value>(?:(?!(?P=quote))[^\n\\]|\\[^\n])*)(?P=quote)"
    r"|(?P<open>\\+[\"'`])(?P<escaped>(?:(?!(?<!\\)(?P=open))[^\n])*)(?P=open)"
)
_BARE = re.compile(r"(?P<value>(?:[^\s\"'`,;&<>|\\]++|\\++(?![nrt\"']))++)")
_CLOSING = ").]}:!?"
_BEFORE = re.compile(r"[\w.-]{0,40}$")
_UPPER = re.compile(r"[A-Z][A-Z0-9_]*$")
_LONGEST_NAME = 40
_LONGEST_BETWEEN = 1_000
_SHORTEST_WORD = 8
_AWS_LENGTH = 40
_SHORTEST = {
    "password": SHORTEST_PASSWORD,
    "cookie": SHORTEST_SECRET,
    "secret": SHORTEST_SECRET,
    "auth": SHORTEST_SECRET,
}
"""Asked first: most words that follow a name are shorter."""
_ESCAPE = re.compile(r"\\+([\"'/\\])")
_KEY = re.compile(r"[A-Za-z0-9+/=]{24,}$")


@lru_cache(maxsize=4096)
def _speaking(name: str) -> str | None:
    """Return what the name of a field speaks of, if it speaks of a secret at its end."""
    low = name.lower()
    return next((found.lastgroup for found in _NAME.finditer(low) if found.end() == len(low)), None)


def named(name: str, value: str) -> str | None:
    """Return which secret a value is that is held under a name, if it is one."""
    group = _speaking(name) if len(name) <= _LONGEST_NAME else None
    return _kind(group, name, ": ", value, is_quoted=True) if group else None


def assigned(text: str, low: str, budget: Budget) -> Iterator[Finding]:
    """Yield the values of names that speak of secrets; `low` is the text in lower case."""
    for anchor in ANCHORS:
        place = low.find(anchor)
        while place >= 0:
            budget.spend(1)
            found = _value(text, low, place, budget)
            if found:
                yield found
            place = low.find(anchor, place + len(anchor))


def _value(text: str, low: str, place: int, budget: Budget) -> Finding | None:
    """Return the secret whose name begins, or goes on, at a place."""
    name = _NAME.match(low, place)
    if not name or text[name.end() : name.end() + 1] not in _NEXT:
        return None
    between = _BETWEEN.match(text, name.end(), name.end() + _LONGEST_BETWEEN)
    if not between:
        return None
    most = LONGEST_PASSWORD if name.lastgroup == "password" else LONGEST_SECRET
    end = min(between.end() + 2 * most, len(text))
    quoted = _QUOTED.match(text, between.end(), end)
    value = quoted or _BARE.match(text, between.end(), end)
    is_open = not quoted and text[between.end() : between.end() + 1] in _QUOTES
    budget.spend(end - name.end() if is_open or not value else value.end() - name.end())
    if not value:
        return None
    if value.end() - value.start() < _SHORTEST[name.lastgroup or ""]:
        return None
    start, end = value.span("escaped" if quoted and quoted["open"] else "value")
    if not quoted:
        end -= _loose_end(value["value"])
    whole = _whole_name(text, place, name.end())
    kind = _kind(
        name.lastgroup or "", whole, between[0], _ESCAPE.sub(r"\1", text[start:end]), is_quoted=bool(quoted)
    )
    return Finding(start, end, kind) if kind else None


def _loose_end(value: str) -> int:
    """Return how much of the end of a value belongs to the sentence or the call around it."""
    closing = value[len(value.rstrip(_CLOSING)) :]
    if not closing:
        return 0
    if closing[0] in ")]}" and {")": "(", "]": "[", "}": "{"}[closing[0]] in value:
        return 0
    return len(closing) if closing[-1] not in "!?" or len(closing) > 1 else 0


def _whole_name(text: str, place: int, end: int) -> str:
    before = _BEFORE.search(text, max(0, place - _LONGEST_NAME), place)
    return text[before.start() if before else place : end]


def _kind(group: str, name: str, between: str, value: str, *, is_quoted: bool) -> str | None:
    """Return what a value is, by its name and by its own looks."""
    is_flag = name.startswith("-") or (between == " " and name.isupper())
    is_spoken = not is_flag and not between.strip(" \t\"'`\\")
    low = name.lower()
    if group == "password":
        if (
            low.endswith(("bypass", "compass"))
            or (low == "pass" and name != low and ":" in between)
            or (is_spoken and not _is_strong(value, is_quoted=is_quoted))
        ):
            return None
        return "password" if _is_password(name, between, value, is_quoted=is_quoted) else None
    if group == "auth":
        return "bearer-token" if is_random(value) else None
    if group == "cookie":
        return "cookie" if is_random(value, may_be_uuid=False) else None
    if not is_random(value) or (low == "key" and (is_spoken or not _KEY.match(value))):
        return None
    return "aws-secret-key" if len(value) == _AWS_LENGTH and "secret" in low and "key" in low else "secret"


def _is_password(name: str, between: str, value: str, *, is_quoted: bool) -> bool:
    if is_password(value, is_quoted=is_quoted):
        return True
    is_setting = bool(_UPPER.match(name)) and between in ("=", '="', "='")
    return is_setting and value.isalpha() and len(value) >= _SHORTEST_WORD and not is_stand_in(value)


def _is_strong(value: str, *, is_quoted: bool) -> bool:
    """Whether a value is a password even where nothing but a space stands between it and its name."""
    return is_quoted or any(sign.isdigit() for sign in value)

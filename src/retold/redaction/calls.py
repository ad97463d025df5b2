"""Passwords and keys among the arguments of calls: `login("ann", "...")`, `auth=("ann", "...")`, `Client("...")`."""

import re
from collections.abc import Iterator

from retold.redaction.rules import JUDGED, Budget, Places
from retold.redaction.secrets import Secret, is_argument, is_random

_FIRST = r"(?:\w{1,20}[ \t]?=[ \t]?)?(?:[bru]?[\"'][^\"'\n]{0,200}[\"']|[\w.]{1,60}),\s{0,80}"
"""An argument and the comma behind it."""
_LAST = r"(?:\w{1,20}[ \t]?=[ \t]?)?[bru]?[\"']([^\"'\n]{3,400})[\"']"

_RANDOM = r"[\"']([A-Za-z0-9_.-]{30,200})[\"']"
_THIRD = re.compile(r"\(\s{0,80}" + _FIRST + _FIRST + _LAST)
_SECOND = re.compile(r"\(\s{0,80}" + _FIRST + _LAST)
_ONLY = re.compile(r"\(\s{0,80}(?:[\"'][^\"'\n]{0,200}[\"'],\s{0,80})?" + _RANDOM)
_FERNET = re.compile(r"\(\s{0,80}b?[\"']([A-Za-z0-9_-]{43}=)[\"']")
_CALLS = (
    ("login", _SECOND, is_argument, "password"),
    ("auth", _SECOND, is_argument, "password"),
    ("credential", _SECOND, is_argument, "password"),
    ("credentials", _SECOND, is_argument, "password"),
    ("pdo", _THIRD, is_argument, "password"),
    ("ftp", _THIRD, is_argument, "password"),
    ("connection", _THIRD, is_argument, "password"),
    ("mysqli", _THIRD, is_argument, "password"),
    ("mysqli_connect", _THIRD, is_argument, "password"),
    ("login", _ONLY, is_random, "secret"),
    ("client", _ONLY, is_random, "secret"),
    ("fernet", _FERNET, is_random, "secret"),
    ("algoliasearch", _ONLY, is_random, "secret"),
)
"""What the name of a call ends in, and where the secret stands in the call."""
_NAMES = tuple({name for name, _, _, _ in _CALLS})
_LONGEST_NAME = 20

ANCHORS = ('("', "('", '(b"', "(b'", "(\n")
"""How calls begin."""


def called(text: str, low: str, seen: Places, budget: Budget) -> Iterator[Secret]:
    """Yield the secrets among the arguments of calls; `low` is the text in lower case, `seen` where the calls stand."""
    for anchor in ANCHORS:
        for place in seen.get(anchor, ()):
            before = low[max(0, place - _LONGEST_NAME) : place].rstrip(" \t=")
            if before.endswith(_NAMES):
                yield from _arguments(before, text, place, budget)


def _arguments(before: str, text: str, place: int, budget: Budget) -> Iterator[Secret]:
    for name, pattern, is_meant, kind in _CALLS:
        found = pattern.match(text, place) if before.endswith(name) else None
        if found:
            budget.spend(JUDGED * (found.end() - place))
            if is_meant(found[1]):
                yield Secret(*found.span(1), kind)

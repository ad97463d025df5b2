"""Secrets of several words, and passwords that a sentence names without the word for it: logins, keys of networks."""

import re
from collections.abc import Iterator

from retold.redaction.rules import ARGUMENT, Budget, Places, Rule, grouped, matches
from retold.redaction.secrets import Secret, is_argument, is_stand_in, is_strong

_IS = r"\\{0,4}[\"'`]?\s{0,4}(?::=|=>|[:=,]|is|are|was|ist|lautet|est)?\s{0,4}:?\s{0,4}\\{0,4}[\"'`]?"
_WORDS = r"((?:[a-z]{3,8} ){11}(?:(?:[a-z]{3,8} ){3}){0,4}[a-z]{3,8})(?! ?[A-Za-z])"
"""12, 15, 18, 21 or 24 words, which is how many a mnemonic phrase may have."""
_DIGITS = 16
"""So many digits are a key of a network."""


def _is_network_key(value: str) -> bool:
    return is_strong(value) or (len(value) >= _DIGITS and value.isdigit())


_RULES = (
    Rule("mnemonic", re.compile(r"(?i:mnemonic(?:[ _-]?(?:phrase|words?))?)" + _IS + _WORDS), bool, "secret"),
    Rule("phrase", re.compile(r"(?i:phrase)" + _IS + _WORDS), bool, "secret"),
    Rule(
        "phrase",
        re.compile(r"(?i:phrase)(?: (?:is|was|lautet|ist))?:?[ =]{1,3}[\"']?((?:[A-Za-z-]{1,20} ){2,8}[A-Za-z-]{0,20}\d[\w!?.-]{0,20})"),
        lambda value: not is_stand_in(value),
    ),
    Rule(
        "phrase",
        re.compile(r"PHRASE=([\"'])((?:[^\s\"'`$]{1,40} ){2,12}[^\s\"'`$]{1,40})\1"),
        lambda value: not is_stand_in(value),
    ),
    *(
        Rule(
            anchor,
            re.compile(r"(?i)(?:wi-?fi|wlan|ssid)[^\n=]{0,60}?(?:key|code|schlüssel|clé)(?: (?:is|ist|lautet))?\s?[:=]?\s{1,3}[\"']?([^\s\"',;]{8,63})"),
            _is_network_key,
        )
        for anchor in ("wifi", "wlan", "ssid")
    ),
    Rule("webhookb2/", re.compile(r"(?i)webhookb2/([^\s\"'<>]{40,400})"), bool, "service-token"),
    Rule("sqlplus", re.compile(r"(?i)sqlplus (?:-\w{1,10} ){0,3}\w{1,60}/([^\s@\"']{3,100})@"), is_argument),
    Rule("pass", re.compile(r"(?i)password /t reg_sz /d " + ARGUMENT), is_argument),
    Rule("wifi", re.compile(r"(?i)wifi:(?:[a-z]:[^\n;]{0,60};){0,3}p:([^\n;]{5,63});"), is_argument),
    *(
        Rule(
            anchor,
            re.compile(
                r"(?i)(?:login|cred(?:ential)?s?)(?: (?:is|are|for \S{1,40}|ist|sind|lauten))?\s?[:=]?\s{1,3}"
                r"[\w.@+-]{2,60} {1,2}/ {1,2}([^\s\"',]{6,100})"
            ),
            is_strong,
        )
        for anchor in ("login", "credential", "creds")
    ),
    Rule(
        "securestring",
        re.compile(r"(?i)securestring[ \t]{1,8}(?:-\w{1,20}[ \t]{1,8}){0,3}([\"'])([^\"'\n]{3,200})\1"),
        is_argument,
    ),
    Rule(
        "assword",
        re.compile(r"(?i)assword:?[\s*]{0,3}\"[\s{;]{1,20}(?:exp_)?send(?:_user)? (?:-- )?\"([^\"\n]{3,200})\""),
        is_argument,
    ),
    Rule(
        "pass",
        re.compile(
            r"(?i)(?<=ch)passwd:\s{1,20}(?:\w+: \w+\s{1,20}){0,2}list:\s?\|?\s{1,20}-?\s?[\w-]{1,40}:([^\s\"']{3,200})"
        ),
        is_argument,
    ),
    Rule(
        "pass",
        re.compile(
            r"(?i)(?<=ht)passwd (?:-\w{1,6} ){0,3}?-\w{0,5}b\w{0,5} (?:-\w{1,4} ){0,2}(?:[^\s-]\S{0,200} )?\S{1,60} "
            + ARGUMENT
        ),
        is_argument,
    ),
)  # fmt: skip
_GROUPS = grouped(_RULES)

ANCHORS = tuple(_GROUPS)
"""What to look for in the text in lower case."""


def phrased(text: str, low: str, seen: Places, budget: Budget) -> Iterator[Secret]:
    """Yield what sentences and settings give away; `low` is the text in lower case, `seen` where the words stand."""
    return matches(_GROUPS, text, low, seen, budget)

"""Passwords in commands: behind the flags of some programs, and what `echo` sends to a program that asks for one."""

import re
from collections.abc import Iterator

from retold.redaction.rules import ARGUMENT, LONGEST_COMMAND, Budget, Places, Rule, grouped, matches
from retold.redaction.secrets import Secret, is_argument, is_random, is_stand_in

_FLAGS = (
    Rule("-p", re.compile(r"(?<=\s)-P ?" + ARGUMENT), is_argument, before=re.compile(r"\b(?:un)?zip\b")),
    Rule(
        "-p",
        re.compile(r"(?<=\s)-p" + ARGUMENT),
        is_argument,
        before=re.compile(r"\b(?:7z[arz]?|(?:un)?rar)\b"),
    ),
    Rule(
        "-p",
        re.compile(r"(?<=\s)-p(?!assword\b)" + ARGUMENT),
        is_argument,
        before=re.compile(r"\b(?:mysql\w{0,12}|mariadb[\w-]{0,12})\b"),
    ),
    Rule(
        "-p",
        re.compile(r"(?<=\s)-p[ =]?" + ARGUMENT),
        is_argument,
        before=re.compile(
            r"\b(?:mongo\w{0,10}|sshpass|twine|cqlsh|rabbitmqadmin"
            r"|(?:docker|podman|helm|skopeo|oras|buildah|oc|az|cf|nerdctl)\b.{0,60}?\blogin)\b"
        ),
    ),
    Rule("-hp", re.compile(r"(?<=\s)-hp" + ARGUMENT), is_argument, before=re.compile(r"\brar\b")),
    Rule(
        "-w ",
        re.compile(r"(?<=\s)-w " + ARGUMENT),
        is_argument,
        before=re.compile(r"\b(?:ldap\w{3,10}|security)\b"),
    ),
    Rule("-n ", re.compile(r"(?<=\s)-N " + ARGUMENT), is_argument, before=re.compile(r"\bssh-keygen\b")),
    Rule("-a ", re.compile(r"(?<=\s)-a " + ARGUMENT), is_argument, before=re.compile(r"\bredis-cli\b")),
    Rule(
        "-u",
        re.compile(r"(?<=\s)-U[ =]?['\"]?[^\s%'\"]{1,80}%([^\s'\"]{1,200})"),
        is_argument,
        before=re.compile(r"\b(?:smbclient|rpcclient|smbmap|net)\b"),
    ),
    Rule(
        "-u",
        re.compile(r"(?<=\s)-u[ =]?\\*[\"']?[^\s:\"']{1,200}:([^\s\"'\\]{1,200})"),
        lambda value: not is_stand_in(value),
        before=re.compile(r"\b(?:curl|https?|xh)\b"),
    ),
    Rule(
        "-t ",
        re.compile(r"(?<=\s)-t " + ARGUMENT),
        is_random,
        "secret",
        before=re.compile(r"\b(?:codecov|doctl|surge|railway)\b"),
    ),
)
_OTHERS = (
    Rule(
        "-user",
        re.compile(r"-user[ =]\\*[\"']?[^\s:\"']{1,200}:([^\s\"'\\]{1,200})"),
        lambda value: not is_stand_in(value),
        before=re.compile(r"\bcurl\b"),
    ),
    Rule(
        "net use",
        re.compile(
            r"(?i)net use(?:r [^\s/]{1,60}| (?:\w:\s+|\*\s+)?\\\\\S{1,200}(?:\s+/user:\S{1,100})?)\s+(?!/)"
            + ARGUMENT
        ),
        is_argument,
    ),
    Rule(
        "login",
        re.compile(r"(?i)login (?:--?\w{1,10} )?([a-z0-9_.-]{20,200})"),
        is_random,
        "secret",
        before=re.compile(r"\b(?:wandb|cargo|hf|huggingface-cli|vault) $"),
    ),
    Rule("snyk auth", re.compile(r"(?i)snyk auth (?:--?\w{1,10} )?([a-z0-9-]{20,200})"), is_random, "secret"),
    Rule("--auth", re.compile(r"(?i)--auth[ =]([a-z0-9_.-]{20,200})"), is_random, "secret"),
)
_ASKING = ("sudo", "stdin", "pass", "secret", "cryptsetup")
"""Programs and flags that take a password from a pipe."""
_ECHO = re.compile(r"(?i)(?:echo|printf) (?:-[neE]{1,3} )?" + ARGUMENT + r" {0,4}\|")
_HERE = re.compile(r"[^\n|;&<]{0,200}<<< ?" + ARGUMENT)
_FROM_PIPE = re.compile(
    r"(?i)sudo (?:-\w+ ){0,4}-S\b|stdin\b|pass(?:wd|phrase-fd)\b|secret create\b|cryptsetup\b"
)
_GROUPS = grouped((*_FLAGS, *_OTHERS))

ANCHORS = (*_GROUPS, *_ASKING)
"""What to look for in the text in lower case."""


def commanded(text: str, low: str, seen: Places, budget: Budget) -> Iterator[Secret]:
    """Yield the passwords in commands; `low` is the text in lower case, `seen` where the words stand."""
    yield from matches(_GROUPS, text, low, seen, budget)
    for anchor in _ASKING:
        for place in seen.get(anchor, ()):
            budget.spend(1)
            if _FROM_PIPE.match(text, place):
                yield from _piped(text, low, place, budget)


def _piped(text: str, low: str, place: int, budget: Budget) -> Iterator[Secret]:
    """Yield what `echo` or a here string sends to a program that asks for a password."""
    line = max(place - LONGEST_COMMAND, low.rfind("\n", max(0, place - LONGEST_COMMAND), place) + 1, 0)
    start = max(low.rfind("echo ", line, place), low.rfind("printf ", line, place))
    sent = _ECHO.match(text, start, place) if start >= 0 else None
    here = _HERE.match(text, place)
    budget.spend(place - line + (here.end() - place if here else 1))
    for found in (sent, here):
        if found and found.lastindex and is_argument(found[found.lastindex]):
            yield Secret(*found.span(found.lastindex), "password")

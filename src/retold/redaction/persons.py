"""Personal data: e-mail addresses, and names of users in the paths of their homes."""

import re
from collections.abc import Iterator

from retold.redaction.rules import Budget
from retold.redaction.secrets import Secret

_LOCAL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._%+-]{0,62}[A-Za-z0-9_+-])?$")
_DOMAIN = re.compile(
    r"@((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,24})(?![A-Za-z0-9-]|:[~/\w])"
)
_NO_PERSON = re.compile(
    r"(?i:.*@(?:[\w.-]+\.)?(?:example(?:\.\w+)?|test\.com|invalid|test|localhost|local)$|.*@[\w.-]*\bnoreply\b|(?:no-?reply|do-?not-?reply|git|hg|svn)@)"
    r"|.*@\dx\.|.*\.(?:png|jpe?g|gif|svg|webp|css|js|ts|py|json|md|html|txt)$"
)
_HOME = re.compile(
    r"(?::?/(?:home|Users)/|:(?:\\+|/)Users(?:\\+|/))(?P<name>[^\W_][\w.+-]{0,30}\w|\w)(?=[/\\\"'`\s:;,)\]>|]|$)"
    r"|-(?:home|Users)-(?P<slug>[a-zA-Z]\w{1,30})(?=[-/\\\"'\s]|$)"
)
_ROOT = re.compile(
    r"(?:^|[\s\"'`(=:\[,>|;{@*]|://(?:localhost|file/?)?|/mnt/[a-z]|/var|/private|/data|/nfs|/host|\\[nrt]|\x1b\[[\d;]*m|%20|-[IL])$"
)
_PARENT = re.compile(r"(?:/|:\\{1,4}|:/|-)$")
_DRIVE = re.compile(r"(?<![A-Za-z])[A-Za-z]$")
_PLACEHOLDER = re.compile(r"user-\d+$")

SHARED = frozenset(
    (
        "admin", "administrator", "all", "app", "appuser", "builder", "circleci", "coder", "codespace", "default", "deploy",
        "dev", "developer", "docker", "ec2-user", "git", "gitpod", "guest", "home", "jenkins", "jovyan", "linuxbrew", "me", "name",
        "node", "nobody", "public", "root", "runner", "shared", "someone", "test", "testuser", "ubuntu", "user", "username",
        "users", "vagrant", "vscode", "work", "you", "yourname", "your-name",
    )
)  # fmt: skip
"""Names of users that identify nobody."""


ANCHORS = ("@", "home", "Users")


def find_personal_data(text: str, budget: Budget) -> Iterator[Secret]:
    """Yield e-mail addresses, and the names of users in paths."""
    yield from _emails(text, budget)
    yield from _homes(text, budget)


def _emails(text: str, budget: Budget) -> Iterator[Secret]:
    place = text.find("@")
    while place >= 0:
        domain = _DOMAIN.match(text, place)
        budget.spend(domain.end() - place if domain else 1)
        local = _LOCAL.search(text, max(0, place - 64), place) if domain else None
        if domain and local and not _NO_PERSON.match(text[local.start() : domain.end()]):
            start = local.start()
            before = text[start - 1 : start]
            if before == "\\" and text[start] in "nrt":  # a line feed, written as an escape
                start += 1
            if before not in ("/", ":") or text[max(0, start - 7) : start] == "mailto:":
                yield Secret(start, domain.end(), "email")
        place = text.find("@", place + 1)


def _homes(text: str, budget: Budget) -> Iterator[Secret]:
    for folder in ("home", "Users"):
        place = text.find(folder)
        while place >= 0:
            budget.spend(1)
            before = _PARENT.search(text, max(0, place - 5), place)
            home = _HOME.match(text, before.start()) if before else None
            if (
                home
                and is_private(home["name"] or home["slug"])
                and (home["slug"] or _is_root(text, home.start()))
            ):
                yield Secret(*home.span("name" if home["name"] else "slug"), "home")
            place = text.find(folder, place + 4)


def _is_root(text: str, place: int) -> bool:
    """Return whether a path may begin here: `/api/users/me` and `src/home/index` contain no home."""
    if text[place] == ":" and _DRIVE.search(text, max(0, place - 2), place):
        return True
    return bool(
        _ROOT.search(text, max(0, place - 12), text.find("/", place) if text[place] == ":" else place)
    )


def is_private(name: str) -> bool:
    """Return whether the name of a user may identify a person."""
    return name.lower() not in SHARED and not _PLACEHOLDER.match(name) and not name.isdigit()

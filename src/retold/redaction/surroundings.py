"""Secrets recognised by their context: headers, addresses, cookies, commands, arguments of calls, and sentences."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator

from retold.redaction.rules import (
    ARGUMENT,
    JUDGED,
    LONGEST_COMMAND,
    Budget,
    Rule,
    WordPositions,
    apply_rules,
    group_by_anchor,
)
from retold.redaction.secrets import (
    Secret,
    is_argument,
    is_dummy,
    is_password,
    is_phrase,
    is_random,
    is_strong,
)

_SHORTEST_TOKEN, _SHORTEST_COOKIE = 20, 24


def _is_credential(value: str) -> bool:
    """Return whether a value is the base64 of a user and a password."""
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_no_dummy(value: str) -> bool:
    return not is_dummy(value)


def _is_long_or_random(value: str) -> bool:
    is_long = len(value) >= _SHORTEST_TOKEN and any(char.isdigit() for char in value)
    return not is_dummy(value) and (is_long or is_random(value))


def _is_network_key(value: str) -> bool:
    return is_strong(value) or (len(value) >= _NETWORK_KEY_DIGITS and value.isdigit())


_NETWORK_KEY_DIGITS = 16
"""A number with so many digits is taken for the key of a network."""

_OPAQUE = r"([A-Za-z0-9_.~+/=-]{12,}(?<![.]))"

_HEADERS = group_by_anchor(
    (
        Rule("bearer", re.compile(r"(?i)bearer(?:\s+|%20|\+)" + _OPAQUE), _is_long_or_random, "bearer-token"),
        Rule("basic", re.compile(r"(?i)basic\s+([A-Za-z0-9+/]{8,}={0,2})"), _is_credential, "basic-auth"),
        Rule(
            "auth",
            re.compile(
                r"(?i)authorization\\*[\"']?\s*[:=,]\s*+\\*+[\"']?+\s*+(?:(?:token|apikey|key|bot|ghtoken|ssws)\s*+)?"
                + _OPAQUE
            ),
            _is_long_or_random,
            "bearer-token",
        ),
        Rule(
            "auth",
            re.compile(r"(?i)auth\\*\"\s*:\s*\\*\"([A-Za-z0-9+/]{8,}={0,2})\\*\""),
            _is_credential,
            "basic-auth",
        ),
        Rule(
            "auth",
            re.compile(r"(?i)(?<=_)auth\s*=\s*\"?([A-Za-z0-9+/]{8,}={0,2})"),
            _is_credential,
            "basic-auth",
        ),
        Rule("auth", re.compile(r"(?i)auth:([a-z0-9]{30})(?![a-z0-9])"), is_random, "service-token"),
        *(
            Rule(
                begin,
                re.compile(
                    rf"{begin.upper()}[A-Z0-9]{{16}}[\"']?[ \t]{{0,8}}[,;:|\t ][ \t]{{0,8}}[\"']?([A-Za-z0-9+/]{{40}})(?![A-Za-z0-9+/=])"
                ),
                is_random,
                "aws-secret-key",
            )
            for begin in ("akia", "asia")
        ),
        Rule("sig=", re.compile(r"(?i)sig=([A-Za-z0-9%+/=]{40,120})"), _is_no_dummy, "azure-key"),
        Rule(
            "signature=",
            re.compile(r"(?i)(?<=[?&-])signature=([A-Za-z0-9%+/=_~.-]{20,2000})"),
            _is_no_dummy,
            "url-password",
        ),
        Rule(
            "identified",
            re.compile(r"(?i)identified\s+(?:with\s+\S+\s+)?by\s+\\*['\"]([^'\"\n\\]+)"),
            _is_no_dummy,
            "password",
        ),
    )
)

_AUTH = re.compile(r"auth(?:orization)?\\*[\"']?\s*[:=,]")
"""Checked before the rules, because `auth` is part of many names."""
_ADDRESS = re.compile(
    r"://(?:(?P<user>[^\s/:@\"'`<>\\?#]*):(?P<password>[^\s/\"'`<>\\]{3,200})|(?P<token>[A-Za-z0-9_-]{16,200}))@(?=[\w.\[-])"
)
_COOKIES = re.compile(
    r"(?i)(?:set-)?cookie\\*[\"']?\s*[:=,]\s*\\*[\"']?([^\r\n\"']{4,8000})|(?:-b|--cookie)[ =]\\*[\"']([^\r\n\"']{4,8000})"
)
_PAIR = re.compile(r"[^\s=;,]++(?:=([^\s;,\\]++))?")
"""A cookie, or a word without a value, which is skipped as a whole."""
_ID = re.compile(r"[A-Za-z0-9%_.~+/=-]{16,}$")

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
    Rule(
        "-n ",
        re.compile(r"(?<=\s)-N " + ARGUMENT),
        lambda value: is_argument(value) or is_phrase(value),
        before=re.compile(r"\bssh-keygen\b"),
    ),
    Rule(
        "/p:",
        re.compile(r"(?<=\s)/p:" + ARGUMENT),
        is_argument,
        before=re.compile(r"\b(?:[wx]?freerdp\d?|wlfreerdp|rdesktop)\b"),
    ),
    Rule(
        "pass",
        re.compile(r"pass[ =]" + ARGUMENT),
        is_argument,
        before=re.compile(r"\b(?:keytool|jarsigner)\b.{0,300}?-(?:src|dest)?(?:store|key)$"),
    ),
    Rule("/rp ", re.compile(r"(?i)/rp " + ARGUMENT), is_argument, before=re.compile(r"\bschtasks\b")),
    Rule(
        "pass",
        re.compile(r"pass:" + ARGUMENT),
        is_argument,
        before=re.compile(r"\bopenssl\b.{0,300}?-pass(?:in|out|word)? [\"']?$"),
    ),
    Rule(
        "pass",
        re.compile(r"(?i)pass(?:word|wd)?=([^\s\"'\\]{3,200})(?=[\s\"'])"),
        is_argument,
        before=re.compile(r"\bansible(?:-\w{1,20})? .{0,300}?(?:-e|--extra-vars) ?[\"'][^\"']{0,200}$"),
    ),
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
        _is_no_dummy,
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
        _is_no_dummy,
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
_PIPE_READERS = ("sudo", "stdin", "pass", "secret", "cryptsetup")
"""Programs and flags that read a password from a pipe."""
_ECHO = re.compile(
    r"(?i)(?:echo|printf) (?:-[neE]{1,3} )?(?:[\"']?%s(?:\\{1,4}n)?[\"']? )?" + ARGUMENT + r" {0,4}\|"
)
_HERE = re.compile(r"[^\n|;&<]{0,200}<<< ?" + ARGUMENT)
_FROM_PIPE = re.compile(
    r"(?i)sudo (?:-\w+ ){0,4}-S\b|stdin\b|pass(?:wd|phrase-fd)\b|secret create\b|cryptsetup\b"
)
_COMMANDS = group_by_anchor((*_FLAGS, *_OTHERS))

_FIRST = r"(?:\w{1,20}[ \t]?=[ \t]?)?(?:[bru]?[\"'][^\"'\n]{0,200}[\"']|[\w.]{1,60}),\s{0,80}"
"""An argument and the comma after it."""
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
"""The end of a call's name, the pattern of its arguments, the check of the value, and the kind of secret."""
_CALL_NAMES = tuple({name for name, _, _, _ in _CALLS})
_LONGEST_CALL_NAME = 20
_CALL_STARTS = ('("', "('", '(b"', "(b'", "(\n")

_IS = r"\\{0,4}[\"'`]?\s{0,4}(?::=|=>|[:=,]|is|are|was|ist|lautet|est)?\s{0,4}:?\s{0,4}\\{0,4}[\"'`]?"
_WORDS = r"((?:[a-z]{3,8} ){11}(?:(?:[a-z]{3,8} ){3}){0,4}[a-z]{3,8})(?! ?[A-Za-z])"
"""12, 15, 18, 21 or 24 words: the lengths of mnemonic phrases."""
_SENTENCES = group_by_anchor((
    Rule("mnemonic", re.compile(r"(?i:mnemonic(?:[ _-]?(?:phrase|words?))?)" + _IS + _WORDS), bool, "secret"),
    Rule("phrase", re.compile(r"(?i:phrase)" + _IS + _WORDS), bool, "secret"),
    Rule(
        "phrase",
        re.compile(r"(?i:phrase)(?: (?:is|was|lautet|ist))?:?[ =]{1,3}[\"']?((?:[A-Za-z-]{1,20} ){2,8}[A-Za-z-]{0,20}\d[\w!?.-]{0,20})"),
        _is_no_dummy,
    ),
    Rule(
        "phrase",
        re.compile(r"PHRASE=([\"'])((?:[^\s\"'`$]{1,40} ){2,12}[^\s\"'`$]{1,40})\1"),
        _is_no_dummy,
    ),
    Rule(
        "phrase",
        re.compile(r"(?i:(?<=pass)phrase)(?: (?:is|was|lautet|ist))?:?[ =]{1,3}((?:[a-z]{3,12} ){3,7}[a-z]{3,12})(?=[.!]?[\"'`]?(?:\s{0,3}\n|\Z))"),
        is_phrase,
    ),
    Rule(
        "phrase",
        re.compile(r"(?i:(?<=pass)phrase)(?: (?:is|was|lautet|ist))?\\{0,4}[\"']?[ :=]{1,4}(\\{0,4}[\"'])((?:[^\s\"'`$\\]{1,20} ){2,9}[^\s\"'`$\\]{1,20})\1"),
        is_phrase,
    ),
    *(
        Rule(
            anchor,
            re.compile(r"(?i)(?:pwd|password) ?= ?\{([^{}\n]{3,200})\}"),
            lambda value: is_password(value, is_quoted=False),
        )
        for anchor in ("pw", "pass")
    ),
    Rule("psk", re.compile(r"(?i)psk ?= ?\"([^\"\n]{8,63})\""), _is_no_dummy),
    Rule(
        "wpa",
        re.compile(r"(?i)wpa[23]?(?:[ -](?:psk|personal))?[ -](?:key|password|passphrase|schlüssel)(?: (?:is|ist|lautet))?\s?[:=]?\s{1,3}[\"']?([^\s\"',;]{8,63})"),
        lambda value: _is_network_key(value) or (is_argument(value) and not value.isalpha()),
    ),
    Rule(
        "pass",
        re.compile(r"(?i)(?<=enter )pass(?:phrase|word) for [^\n:]{1,200}: {1,3}(\S{5,200})(?=\s{0,3}(?:\n|\Z))"),
        is_strong,
    ),
    Rule(
        "pass",
        re.compile(r"(?i)password[ \t]{1,8}\"([^\"\n]{3,200})\""),
        _is_no_dummy,
        before=re.compile(r"\bmachine \S{1,200} .{0,200}?\blogin\b"),
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
))  # fmt: skip

ANCHORS = (
    *_HEADERS, "cookie", "-b ", "://", *_COMMANDS, *_PIPE_READERS, *_CALL_STARTS, *_SENTENCES,
)  # fmt: skip
"""Words to search for in the lowercase text."""


def find_in_headers(text: str, low: str, positions: WordPositions, budget: Budget) -> Iterator[Secret]:
    """Yield the secrets in headers and addresses; `positions` has those of the anchors in the lowercase text."""
    if "auth" in positions:
        positions = {**positions, "auth": [start for start in positions["auth"] if _AUTH.match(low, start)]}
    yield from apply_rules(_HEADERS, text, low, positions, budget)
    yield from _addresses(text, positions.get("://", ()), budget)


def _addresses(text: str, starts: Iterable[int], budget: Budget) -> Iterator[Secret]:
    """Yield the passwords in addresses, and the tokens in place of users."""
    for start in starts:
        match = _ADDRESS.match(text, start)
        budget.spend(match.end() - start if match else 1)
        if not match:
            continue
        if match["password"] is not None and not is_dummy(match["password"]):
            yield Secret(*match.span("password"), "url-password")
        elif match["token"] is not None and is_random(match["token"]):
            yield Secret(*match.span("token"), "url-password")


def find_cookies(text: str, low: str, positions: WordPositions, budget: Budget) -> Iterator[Secret]:  # noqa: ARG001 - as all finders
    """Yield the values of cookies that look like session ids."""
    for anchor in ("cookie", "-b "):
        done = 0
        for start in positions.get(anchor, ()):
            header = _COOKIES.match(text, start) if start >= done else None
            budget.spend(header.end() - start if header else len(anchor))
            if not header:
                continue
            first, done = header.span(1 if header[1] else 2)
            for pair in _PAIR.finditer(text, first, done):
                value = pair[1]
                if value and _ID.match(value) and (is_random(value) or len(value) >= _SHORTEST_COOKIE):
                    yield Secret(*pair.span(1), "cookie")


def find_in_commands(text: str, low: str, positions: WordPositions, budget: Budget) -> Iterator[Secret]:
    """Yield the passwords in commands: after flags, and from a pipe or a here-string."""
    yield from apply_rules(_COMMANDS, text, low, positions, budget)
    for anchor in _PIPE_READERS:
        for start in positions.get(anchor, ()):
            budget.spend(1)
            if _FROM_PIPE.match(text, start):
                yield from _find_in_pipe(text, low, start, budget)


def _find_in_pipe(text: str, low: str, place: int, budget: Budget) -> Iterator[Secret]:
    """Yield the argument of `echo`, and the here-string, that a program reads as its password."""
    line = max(place - LONGEST_COMMAND, low.rfind("\n", max(0, place - LONGEST_COMMAND), place) + 1, 0)
    start = max(low.rfind("echo ", line, place), low.rfind("printf ", line, place))
    echo = _ECHO.match(text, start, place) if start >= 0 else None
    here = _HERE.match(text, place)
    budget.spend(place - line + (here.end() - place if here else 1))
    for match in (echo, here):
        if match and match.lastindex and is_argument(match[match.lastindex]):
            yield Secret(*match.span(match.lastindex), "password")


def find_in_calls(text: str, low: str, positions: WordPositions, budget: Budget) -> Iterator[Secret]:
    """Yield the secrets among the arguments of calls: `login("ann", "...")`, `auth=("ann", "...")`, `Client("...")`."""
    for anchor in _CALL_STARTS:
        for start in positions.get(anchor, ()):
            before = low[max(0, start - _LONGEST_CALL_NAME) : start].rstrip(" \t=")
            if before.endswith(_CALL_NAMES):
                yield from _arguments(before, text, start, budget)


def _arguments(before: str, text: str, start: int, budget: Budget) -> Iterator[Secret]:
    for name, pattern, is_secret, kind in _CALLS:
        match = pattern.match(text, start) if before.endswith(name) else None
        if match:
            budget.spend(JUDGED * (match.end() - start))
            if is_secret(match[1]):
                yield Secret(*match.span(1), kind)


def find_in_sentences(text: str, low: str, positions: WordPositions, budget: Budget) -> Iterator[Secret]:
    """Yield mnemonic phrases, and passwords in sentences and settings that do not call them so."""
    return apply_rules(_SENTENCES, text, low, positions, budget)

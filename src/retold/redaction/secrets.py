"""The kinds of secrets, and checks of the values that rules find."""

import re
from typing import NamedTuple, Protocol, Self, TypeVar

KINDS = {
    "anthropic-key": "keys of Anthropic",
    "aws-access-key-id": "ids of keys of AWS",
    "aws-secret-key": "secret keys of AWS",
    "azure-key": "account keys and signatures of Azure",
    "basic-auth": "user and password in a header",
    "bearer-token": "tokens in a header",
    "cookie": "cookies and ids of web sessions",
    "email": "e-mail addresses",
    "github-token": "tokens of GitHub",
    "gitlab-token": "tokens of GitLab",
    "google-api-key": "API keys of Google",
    "google-oauth": "OAuth tokens and client secrets of Google",
    "home": "names of users, first of all in the paths of their home folders",
    "huggingface-token": "tokens of Hugging Face",
    "jwt": "JSON web tokens",
    "npm-token": "tokens of npm",
    "openai-key": "keys of OpenAI",
    "password": "passwords, passphrases and keys of networks",
    "private-key": "private keys in PEM",
    "pypi-token": "tokens of PyPI",
    "secret": "what is assigned to the name of a secret and looks random, and mnemonic phrases",
    "sendgrid-key": "keys of SendGrid",
    "service-token": "tokens of some eighty other services",
    "slack-token": "tokens of Slack",
    "slack-webhook": "webhooks of Slack",
    "stripe-key": "live keys and webhook secrets of Stripe",
    "twilio-key": "keys of Twilio",
    "url-password": "passwords, tokens and signatures in addresses",
}
"""The kinds of secrets, each with its description for the documentation."""

PLACEHOLDER = re.compile(r"\[redacted:(?:" + "|".join(KINDS) + r"):\d+\]")
"""The text that replaces a secret. The detector never takes it for a secret."""


class Secret(NamedTuple):
    """A range of a text that is a secret."""

    start: int
    end: int
    kind: str


class _Piece(Protocol):
    """A range of a text."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    def _replace(self, *, end: int) -> Self: ...


P = TypeVar("P", bound=_Piece)


def merge_overlaps(pieces: list[P]) -> list[P]:
    """Return pieces in order and without overlaps: of two that overlap, the first is extended to the end of both."""
    pieces.sort(key=lambda piece: (piece.start, -piece.end))
    merged: list[P] = []
    for piece in pieces:
        if not merged or piece.start >= merged[-1].end:
            merged.append(piece)
        elif piece.end > merged[-1].end:
            merged[-1] = merged[-1]._replace(end=piece.end)
    return merged


_DUMMY = re.compile(
    r"(?i:"
    r"(?:test|dev|local|my|your|the|some|new|old|db|user|super)?[_-]?"
    r"(?:password|passwd|passphrase|pass|pwd|secret|token|api[_-]?key|key|pw)\d{0,3}"
    r"|none|null|nil|true|false|undefined|empty|optional|required|unknown|admin|root|postgres|guest|default|string"
    r"|foo(?:bar)?|bar|baz|qwerty|letmein|hunter2|sk-|changeit"
    r")[.,;:]?$"
)
_DUMMY_PART = re.compile(
    r"(?i:your[_-]|[_-]your|example|placeholder|change[_-]?(?:me|this)|replace[_-]?(?:me|this|with)|redacted|dummy"
    r"|x{5,}|\*{3,}|\.{3}|…|•{3}|0{10}|#{4,}|12345678|abcdefgh|[_-]here\b|required\|)"
)
"""Pieces of a value that show that it is not a real one."""
_VARIABLE = re.compile(
    r"[$%<]\w*[%>]?$|\$[{(]?[A-Za-z_]|\{\{|\{[\w.]*\}|%\(?\w+[%)]|<[^>]+>?$|@\w+@$|@?Microsoft\."
)
_CODE = re.compile(
    r"[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)+(?:[(\[].*)?$"  # settings.SECRET_KEY, self.next()
    r"|[\w$.:]*[(\[{].*"  # getpass(, tokens[i, Some(
    r"|[!&*|^~=+?:-]+[A-Za-z_]?\w*$|[a-z_]{1,24}=$|.*=>|[\w.]*::\w"
)
_MIXED_END = re.compile(r"\.(?=[A-Za-z_$]{0,40}\d{1,40}[A-Za-z])[\w$]+$")
"""The last name after a dot contains a digit, which is rare in code."""
_PATH = re.compile(r"(?:\.{0,2}|~|[A-Za-z]:|file:)[/\\](?:[\w.@~-]+[/\\])*[\w.@~*-]*$|\w+://")
_FILE = re.compile(r"[\w.@~/\\-]+\.(?:[a-z]{2,4}|json|yaml|toml|conf|config|properties|html)$")
_NUMBER = re.compile(r"[+-]?(?:0x[0-9a-fA-F]{0,16}|\d{1,12}(?:\.\d+)?)[a-z%]{0,3}$")
_TECHNICAL = re.compile(
    r"(?i:sha-?\d+|md5|base64|utf-?8|argon2\w*|oauth2?|hs\d+|rs\d+|aes\S*|h[12]|v\d+|es\d+)$"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DIGEST = re.compile(r"(?:sha\d+|md5|h1)[-:]")
_WORD = re.compile(r"[A-Za-z]++\d{0,4}$|\d{1,6}$|v\d++(?:[a-z]\d*+)?$|$")
_SEPARATOR = re.compile(r"[-_.:/\\@+ |,]")
_RANDOM = re.compile(r"[A-Za-z0-9+/=_.~%:-]+$")
_CHANGE = re.compile(r"(?<=\d)(?=[A-Za-z])|(?<=[A-Za-z])(?=\d)|(?<=[a-z])(?=[A-Z])")
_PASSPHRASE = re.compile(r"(?:[^\s\"'`:,;.?!()]{1,40} ){1,8}[A-Za-z!-]{2,20}\d{1,6}[!?.]?$")
"""Words of which the last ends in a number."""
_PHRASE = re.compile(r"(?:[^\W\d_]{2,20}[ -]){2,9}[^\W\d_]{2,20}$")
_PROSE = re.compile(
    r"(?i)\b(?:an?|the|my|your|our|new|old|is|are|was|be|been|must|may|can|will|has|have|no|not|none|if|it|its|as|at|by|for|from|in|of|on|or"
    r"|and|per|to|when|where|which|while|with|without|what\w*|that|this|only|once|ask(?:s|ed)?|enter(?:s|ed)?|type[sd]?|read|stored?|used?"
    r"|set|unset|least|optional|required|random|default|missing|wrong|invalid|failed|prompt\w*|characters?|letters|words?|string|value|field"
    r"|file|env\w*|variable|keys?|phrases?|secrets?|pass\w*|here|see|please|user|der|die|das|ein|eine|für|nicht|bitte|le|la|les|de|du|est)\b"
)
"""Words of a sentence about a passphrase. Few passphrases contain one."""
_LETTER_AND_OTHER = re.compile(r"(?=.*[^A-Za-z])(?=.*[A-Za-z])|\d{6,}$")

_DENSE = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[^\s<>\"'`]+$")
_TIME = re.compile(r"\d{1,4}[-:./]\d{1,2}(?:[-:./]\d{1,4})?\S{0,6}$")
_KEYWORD = re.compile(r"[a-z_]{1,24}=$")
_SHORTEST_ARGUMENT = 3

SHORTEST_PASSWORD, LONGEST_PASSWORD = 5, 200
SHORTEST_SECRET, LONGEST_SECRET = 16, 2_000
_FEWEST_CHANGES = 3


def is_dummy(value: str) -> bool:
    """Return whether a value is a placeholder, a variable or a word such as `changeit`."""
    return bool(_DUMMY.match(value) or has_dummy_marker(value) or _VARIABLE.match(value))


def has_dummy_marker(value: str) -> bool:
    """Return whether a value contains something that no real one contains."""
    return bool(_DUMMY_PART.search(value) or PLACEHOLDER.search(value))


def is_password(value: str, *, is_quoted: bool) -> bool:
    """Return whether a value assigned to a password may be one; a sentence, a name in code or a type is none."""
    if (
        not SHORTEST_PASSWORD <= len(value) <= LONGEST_PASSWORD
        or (" " in value.strip() and not (is_quoted and _PASSPHRASE.match(value)))
        or not _LETTER_AND_OTHER.match(value)
    ):
        return False
    if is_dummy(value) or _PATH.match(value) or _FILE.match(value) or _TECHNICAL.match(value):
        return False
    if is_quoted:
        return not _is_wordy(value) or any(sign.isdigit() for sign in value)
    return not (
        (_CODE.match(value) and not _MIXED_END.search(value)) or _is_identifier(value) or _NUMBER.match(value)
    )


def is_random(value: str, *, may_be_uuid: bool = True) -> bool:
    """Return whether a value looks random."""
    if not SHORTEST_SECRET <= len(value) <= LONGEST_SECRET or not _RANDOM.match(value):
        return False
    is_uuid = bool(_UUID.match(value))
    if not is_uuid and len(_CHANGE.findall(value)) < _FEWEST_CHANGES:
        return False
    is_code = _CODE.match(value) and not _MIXED_END.search(value)
    if is_dummy(value) or _DIGEST.match(value) or is_code or _PATH.match(value):
        return False
    if not may_be_uuid and (_UUID.search(value) or _DATE.search(value)):
        return False
    return is_uuid or not _is_wordy(value)


def is_dense(value: str) -> bool:
    """Return whether a quoted value without spaces mixes letters, digits and signs as generated keys do."""
    return (
        SHORTEST_SECRET <= len(value) <= LONGEST_SECRET
        and bool(_DENSE.match(value))
        and not is_dummy(value)
        and len(_CHANGE.findall(value)) >= _FEWEST_CHANGES
    )


def is_argument(value: str) -> bool:
    """Return whether a value is a password where only a password is expected: all but placeholders and sentences."""
    if not _SHORTEST_ARGUMENT <= len(value) <= LONGEST_PASSWORD or is_dummy(value):
        return False
    if _PATH.match(value) or _KEYWORD.match(value):
        return False
    return " " not in value or any(sign.isdigit() for sign in value)


def is_phrase(value: str) -> bool:
    """Return whether a value is a passphrase: several words that are no sentence."""
    return bool(_PHRASE.match(value)) and not _PROSE.search(value) and not is_dummy(value)


def is_strong(value: str) -> bool:
    """Return whether a value is a password even in a sentence: it has a digit and another character, and is no path or number."""
    return (
        len(value) > SHORTEST_PASSWORD
        and is_password(value, is_quoted=False)
        and any(sign.isdigit() for sign in value)
        and not _TIME.match(value)
    )


def is_mixed(value: str) -> bool:
    """Return whether a value is a piece of something random: letters and digits, or small and capital letters, alternate."""
    return len(_CHANGE.findall(value)) > 1 and not _is_wordy(value)


def _is_wordy(value: str) -> bool:
    """Return whether a value consists of words and numbers joined by signs."""
    return all(_WORD.match(piece) for piece in _SEPARATOR.split(value))


def _is_identifier(value: str) -> bool:
    """Return whether a value without quotes may be a name in code; words that end in two or more digits are none."""
    return bool(re.match(r"(?:[^\W\d]|\$)+\d?[);]*$", value))

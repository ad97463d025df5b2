"""Secrets assigned to a name: in settings, code, JSON, flags, forms and sentences."""

import re
from collections.abc import Iterator
from functools import lru_cache

from retold.redaction.rules import Budget, WordPositions
from retold.redaction.secrets import (
    LONGEST_PASSWORD,
    LONGEST_SECRET,
    SHORTEST_PASSWORD,
    SHORTEST_SECRET,
    Secret,
    is_argument,
    is_dense,
    is_dummy,
    is_password,
    is_random,
)

_FOREIGN = (
    "passord",
    "wachtwoord",
    "lösenord",
    "adgangskode",
    "salasana",
    "senha",
    "hasło",
    "heslo",
    "şifre",
    "пароль",
    "Пароль",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
)
"""Words for password in other languages."""
ANCHORS = (
    *_FOREIGN,
    "pass",
    "pw",
    "session",
    "kennwort",
    "contrase",
    "mdp",
    "psk",
    "secret",
    "token",
    "key",
    "credential",
    "pat",
    "sess",
    "sid",
    "cookie",
)
"""Words in the names of secrets, to search for in the lowercase text."""

_NAME = re.compile(
    rf"(?:(?P<password>{'|'.join(_FOREIGN)}"
    r"|pass(?:wor[dt]|wd|phrase|code|e)?|(?<![a-z])pwd?|(?<![a-z])(?:mdp|psk)|(?<=_)(?:pwd?|psk)|kennwort|contrase(?:ñ|n)a)"
    r"|(?P<cookie>cookie|sess(?:ion)?(?:[_-]?(?:id|key|token))?|(?<![a-z0-9_-])sid)"
    r"|(?P<secret>secret|token|credential|key|(?<=[_-])pat)"
    r"|(?P<auth>authorization))"
    r"(?:(?=[_bdklprstv0-9-])[_-]?(?:key|token|secret|base|value|string|str|raw|plain|text|data|prod|dev|test|live|staging|default|phrase|\d{1,2})){0,4}"
    r"(?: \d(?=:))?"
)
_NAMED = re.compile(rf"{_NAME.pattern}(?=[\\\"'`\])?! \t\n:=,>|(\uff1a是为は])")
"""A name, and a character after it that may begin an assignment."""
_FOLLOWING = frozenset("\\\"'`])?! \t\n:=,>|(\uff1a是为は_-0123456789bcdeiklprstvwñn")
"""Characters that may follow an anchor. Checked first, because most anchors are parts of other words."""
_WORD_NEXT = re.compile(r"[ \t](?!is\b|was\b|are\b)[A-Za-z][^\s:=]{0,14}(?:\s|$)")
"""A short word after a name: no key is so short."""
_QUOTES = frozenset("\"'`\\")
_BETWEEN = re.compile(
    r"\\*[\"'`]?\]?\)?(?:"
    r"(?:,\s{0,80}|\\{0,4}n[ \t]{1,40}|\n[ \t]{1,40})\\{0,4}[\"']?value\\{0,4}[\"']?[ \t]*[:=][ \t]*"  # name: password, value: b
    r"|(?:[ \t]\[\w{0,30}\])?[ \t]*(?:\?|!)?(?::[ \t]*[>|][+-]?\d?[ \t]*\n[ \t]{1,40}|:[ \t]*[A-Za-z]\w*(?:<\w+>)?(?:[ \t]*\|[ \t]*\w+)?[ \t]*=|:=|=>|==?=?|!==?|:|,)[ \t]*(?:\\[nt])?"  # a = b, a: str = b
    r"|>(?=[^<\s]+</)"  # <password>b</password>
    r"|[ \t]?(?:\uff1a|是|为|は)[ \t]*:?[ \t]*"  # with a full-width colon, or a word for `is`
    r"|(?<=[\"'])[ \t]+(?:type=[\"']?\w+[\"']?[ \t]+)?value[ \t]*=[ \t]*"  # name="password" value="b"
    r"|(?P<call>\()[ \t]*(?=[\"'])"  # setPassword("b")
    r"|[ \t]+(?:is|was|are|ist|lautet|est|es|è|é)[ \t]?:?[ \t]+"  # the password is b
    r"|(?P<spoken>[ \t]+(?:(?:for|of|on|to|für|der|des|de|du|vom|von|zum|en|pour|del|di|do|da|voor)[ \t]+(?:[^\s:=.,;]{1,30}[ \t]+){0,6}?)"
    r"(?:(?:is|was|to|now|ist|lautet|est|c'est|es|en|auf|à|è|é)[ \t]?:?|[^\s:=.,;]{1,30}:)[ \t]+|[ \t]+(?:to|auf|en)[ \t]+)"  # the password of a is b
    r"|(?<=\")[ \t]*\{\s{1,80}(?:(?:type|description|sensitive)[ \t]*=[^\n\"]{0,40}(?:\"[^\n\"]{0,200}\")?[ \t]*\n\s{0,80}){0,4}default[ \t]*=[ \t]*"  # variable "password" { default = "b" }
    r"|(?<=\w)[ \t]*\|[ \t]+|[ \t]{2,}|[ \t](?=\S)"  # | name | b |, in columns, flags
    r")(?:\[\]byte\(|[Ss]tring(?:::from)?\(|new \w+\(|\(?ConvertTo-SecureString[ \t]+(?:-String[ \t]+)?|\(\s{0,80}(?=[\"'])|[@bBrRuUfF](?=[\"']))?"
)
_QUOTED = re.compile(
    r"(?P<quote>[\"'`])(?P<value>(?:(?!(?P=quote))[^\n\\]|\\[^\n])*)(?P=quote)"
    r"|(?P<open>\\+[\"'`])(?P<escaped>(?:(?!(?<!\\)(?P=open))[^\n])*)(?P=open)"
)
_BARE = re.compile(r"(?P<value>(?:[^\s\"'`,;&<>|\\]++|\\++(?![nrt\"']))++)")
_SPACED = re.compile(r"(?P<value>(?:[^\s\"'`\\,;&<>|]|[&<>|](?![\s/&<>|]|$))+)")
"""A password after a colon and a space. It may contain characters that end it elsewhere."""
_MORE = re.compile(
    r"[ \t]{0,8}(?P<sign>\+|\.|\\)?\s{0,200}(?:\+[ \t]{0,8})?[bru]?(?P<quote>[\"'`])(?P<value>(?:(?!(?P=quote))[^\n\\]|\\[^\n])*)(?P=quote)"
)
_SETTER = re.compile(r"(?:\w{0,30}[._])?(?:set|with|add)\w{0,30}$", re.IGNORECASE)
_CONNECTION = re.compile(r"(?i)(?:server|host|data source|database|user id|uid|dsn|driver|endpoint)=")
_CONTINUATION = re.compile(r"\s{0,80}[+.\\\"'`]")
"""The beginning of another quoted text that is added to one."""
_MOST_PIECES = 20
_CLOSING = ").]}:!?,"
_BACKWARDS = re.compile(r"[\w.-]{0,40}")
_UPPER = re.compile(r"[A-Z][A-Z0-9_]*$")
_SECRET_NAME = re.compile(r"secret|(?:auth|logged_in|nonce)_(?:key|salt)$")
_PUBLIC = ("publickey", "public_key", "public-key")
_LONGEST_NAME = 40
_LONGEST_BETWEEN = 1_000
_SHORTEST_WORD = 8
_AWS_LENGTH = 40
_AWS_REST = re.compile(r"\r?\n[ \t]{0,40}([A-Za-z0-9+/]{1,24})(?![A-Za-z0-9+/=_:.-])")
"""The rest of a key that a line end parts. The length of the whole key is known."""
_SHORTEST = {
    "password": SHORTEST_PASSWORD,
    "cookie": SHORTEST_SECRET,
    "secret": SHORTEST_SECRET,
    "auth": SHORTEST_SECRET,
}
"""Checked first: most words that follow a name are shorter."""
_ESCAPE = re.compile(r"\\+([\"'/\\])")
_KEY = re.compile(r"[A-Za-z0-9+/=]{24,}$")


@lru_cache(maxsize=4096)
def _announced_kind(name: str) -> str | None:
    """Return the kind of secret that the end of a field's name announces; None if it announces none."""
    low = name.lower()
    return next((found.lastgroup for found in _NAME.finditer(low) if found.end() == len(low)), None)


def classify_field(name: str, value: str) -> str | None:
    """Return the kind of secret that the value of a field is; None if it is no secret."""
    group = _announced_kind(name) if len(name) <= _LONGEST_NAME else None
    return _kind(group, name, ": ", value, is_quoted=True) if group else None


def find_assignments(text: str, low: str, positions: WordPositions, budget: Budget) -> Iterator[Secret]:
    """Yield the values assigned to names of secrets."""
    for anchor in ANCHORS:
        places = positions.get(anchor, ())
        budget.spend(len(places))
        for place in places:
            name = (
                _NAMED.match(low, place)
                if low[place + len(anchor) : place + len(anchor) + 1] in _FOLLOWING
                else None
            )
            found = _value(text, place, name, budget) if name else None
            if found:
                yield found


def _value(text: str, place: int, name: re.Match[str], budget: Budget) -> Secret | None:
    """Return the secret whose name has an anchor at a position."""
    group = name.lastgroup or ""
    if group != "password" and _WORD_NEXT.match(text, name.end()):
        return None
    between = _BETWEEN.match(text, name.end(), name.end() + _LONGEST_BETWEEN)
    if not between:
        return None
    most = LONGEST_PASSWORD if group == "password" else LONGEST_SECRET
    end = min(between.end() + 2 * most, len(text))
    quoted = _QUOTED.match(text, between.end(), end)
    value = quoted or _bare(group, between).match(text, between.end(), end)
    is_open = not quoted and text[between.end() : between.end() + 1] in _QUOTES
    budget.spend(end - name.end() if is_open or not value else value.end() - name.end())
    if not value or (
        value.end() - value.start() < _SHORTEST[group]
        and not (quoted and _CONTINUATION.match(text, quoted.end()))
    ):
        return None
    whole = _whole_name(text, place, name.end())
    if between["call"] and not _SETTER.match(whole):
        return None
    start, end = value.span("escaped" if quoted and quoted["open"] else "value")
    secret = text[start:end]
    if quoted and not quoted["open"] and _CONTINUATION.match(text, quoted.end()):
        rest, end = _pieces(text, quoted.end(), between[0], budget)
        secret, end = secret + rest, end if rest else quoted.end("value")
    if end - start < _SHORTEST[group]:
        return None
    if not quoted:
        end -= _trailing_punctuation(secret)
        secret = text[start:end]
        last = _AWS_REST.match(text, end) if len(secret) < _AWS_LENGTH else None
        if (
            last
            and len(secret) + len(last[1]) == _AWS_LENGTH
            and _is_aws(whole)
            and is_random(secret + last[1])
        ):
            return Secret(start, last.end(), "aws-secret-key")
    is_whole = between[0] == ">" or (between[0] == "=" and _is_in_connection(text, name.end() - len(whole)))
    kind = _kind(
        group,
        whole,
        between[0],
        _ESCAPE.sub(r"\1", secret) if "\\" in secret else secret,
        is_quoted=bool(quoted) or is_whole,
        is_sentence=bool(between["spoken"]),
    )
    return Secret(start, end, kind) if kind else None


def _bare(group: str, between: re.Match[str]) -> re.Pattern[str]:
    return _SPACED if group == "password" and between[0][-1:] == " " and ":" in between[0] else _BARE


def _pieces(text: str, place: int, between: str, budget: Budget) -> tuple[str, int]:
    """Return the quoted texts that are added to one, and the end of the last of them."""
    pieces, end = "", place
    for _ in range(_MOST_PIECES):
        more = _MORE.match(text, place, place + LONGEST_SECRET)
        budget.spend(more.end() - place if more else 1)
        if not more or not (more["sign"] or (between.rstrip().endswith("(") and "\n" in more[0])):
            break
        pieces, end, place = pieces + more["value"], more.end("value"), more.end()
    return pieces, end


def _is_in_connection(text: str, place: int) -> bool:
    """Return whether a setting is part of a connection string, in which only `;` ends a value."""
    return text[place - 1 : place] == ";" and bool(_CONNECTION.search(text, max(0, place - 300), place))


def _trailing_punctuation(value: str) -> int:
    """Return how many characters at the end of a value belong to the sentence or the call around it."""
    closing = value[len(value.rstrip(_CLOSING)) :]
    if not closing:
        return 0
    if closing[0] in ")]}" and {")": "(", "]": "[", "}": "{"}[closing[0]] in value:
        return 0
    return len(closing) if closing[-1] not in "!?" or len(closing) > 1 else 0


def _whole_name(text: str, place: int, end: int) -> str:
    before = _BACKWARDS.match(text[max(0, place - _LONGEST_NAME) : place][::-1])
    return text[place - (before.end() if before else 0) : end]


def _kind(  # noqa: PLR0913 - everything that a value is judged by
    group: str, name: str, between: str, value: str, *, is_quoted: bool, is_sentence: bool = False
) -> str | None:
    """Return the kind of a secret, by its name and its value; None if it is no secret."""
    is_flag = name.startswith("-") or (between == " " and name.isupper())
    is_spoken = is_sentence or (not is_flag and not between.strip(" \t\"'`\\"))
    low = name.lower()
    if group == "password":
        if (
            low.endswith(("bypass", "compass"))
            or (low == "pass" and name != low and ":" in between)
            or (is_spoken and not _is_strong(value, is_quoted=is_quoted))
        ):
            return None
        is_one = _is_password(name, between, value, is_quoted=is_quoted) or (
            name.startswith("-") and _is_flagged(between, value)
        )
        return "password" if is_one else None
    if group == "auth":
        return "bearer-token" if is_random(value) else None
    if group == "cookie":
        return "cookie" if is_random(value, may_be_uuid=False) else None
    if low.startswith(_PUBLIC):
        return None
    if is_quoted and _SECRET_NAME.search(low) and is_dense(value):
        return "secret"
    if not is_random(value) or (low == "key" and (is_spoken or not _KEY.match(value))):
        return None
    return "aws-secret-key" if len(value) == _AWS_LENGTH and _is_aws(name) else "secret"


def _is_aws(name: str) -> bool:
    low = name.lower()
    return "secret" in low and "key" in low


def _is_flagged(between: str, value: str) -> bool:
    """Return whether a value after a flag is a password. After a space, a word may also be part of a sentence."""
    return (
        is_argument(value) and len(value) >= SHORTEST_PASSWORD and (between[:1] == "=" or not value.isalpha())
    )


def _is_password(name: str, between: str, value: str, *, is_quoted: bool) -> bool:
    if is_password(value, is_quoted=is_quoted):
        return True
    is_setting = bool(_UPPER.match(name)) and between in ("=", '="', "='")
    return is_setting and value.isalpha() and len(value) >= _SHORTEST_WORD and not is_dummy(value)


def _is_strong(value: str, *, is_quoted: bool) -> bool:
    """Return whether a value is a password even if only a space separates it from its name."""
    return is_quoted or any(sign.isdigit() for sign in value)

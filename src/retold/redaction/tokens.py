"""Secrets that give themselves away: by how they begin, which characters follow, and how many."""

import re
from collections.abc import Iterator
from itertools import chain

from retold.redaction.budget import Budget
from retold.redaction.finding import Finding
from retold.redaction.judgement import is_hint

_W = r"[A-Za-z0-9_-]"
_A = r"[A-Za-z0-9]"
_H = r"[0-9a-f]"

_SERVICES = (
    rf"do[opr]_v1_{_H}{{64}}|dckr_(?:pat|oat)_{_W}{{20,40}}|gsk_{_A}{{40,64}}|xai-{_A}{{60,100}}"
    rf"|lin_(?:api|oauth)_{_A}{{32,64}}|shp(?:at|ca|pa|ss)_{_H}{{32}}|hv[sbr]\.{_W}{{24,200}}"
    rf"|glsa_{_A}{{32}}_{_H}{{8}}|r8_{_A}{{37}}|sk-or-v1-{_H}{{64}}|tvly-(?:dev-|prod-)?{_A}{{24,48}}"
    rf"|pplx-{_A}{{40,64}}|ntn_{_A}{{40,60}}|figd_{_W}{{40,60}}|rubygems_{_H}{{48}}|sbp_{_H}{{40}}"
    rf"|pcsk_{_W}{{40,100}}|lsv2_(?:pt|sk)_{_H}{{32}}_{_H}{{10}}|NRAK-[A-Z0-9]{{27}}|PMAK-{_H}{{24}}-{_H}{{34}}"
    rf"|sq0(?:atp|csp|idp)-{_W}{{22,43}}|dp\.(?:pt|st|ct|sa)\.{_W}{{40,44}}|pscale_(?:tkn|pw|oauth)_{_W}{{32,64}}"
    rf"|ATATT3{_W}{{60,250}}=?{_H}{{0,8}}|atlasv1\.{_W}{{60,70}}|sntry[su]_{_W}{{40,200}}|phc_{_A}{{40,48}}"
    rf"|AGE-SECRET-KEY-1[A-Z0-9]{{58}}|FlyV1 fm\d_{_W}{{40,}}|key-{_H}{{32}}|SK-{_W}{{40,64}}|ak_live_{_A}{{24,64}}"
)
_JOINED = (
    ("openai-key", rf"sk-(?:proj|svcacct|admin|None)-{_W}{{40,200}}|sk-{_A}{{40,64}}"),
    ("anthropic-key", rf"sk-ant-{_W}{{60,200}}"),
    ("github-token", rf"gh[pousr]_{_A}{{36,255}}|github_pat_{_A}{{20,30}}_{_A}{{50,70}}"),
    ("gitlab-token", rf"gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|imt|feed|ft)-{_W}{{20,64}}"),
    ("slack-token", r"xox[abeprs]-[A-Za-z0-9-]{20,255}|xapp-\d-[A-Za-z0-9-]{40,255}"),
    ("stripe-key", rf"(?:sk|rk)_live_{_A}{{16,255}}|whsec_[A-Za-z0-9+/]{{24,64}}"),
    ("npm-token", rf"npm_{_A}{{36}}"),
    ("pypi-token", rf"pypi-AgE{_W}{{50,400}}"),
    ("huggingface-token", rf"(?:hf|api_org)_{_A}{{30,40}}"),
    ("sendgrid-key", rf"SG\.{_W}{{16,32}}\.{_W}{{32,64}}"),
    ("google-oauth", rf"ya29\.{_W}{{20,400}}|GOCSPX-{_W}{{20,40}}"),
    ("service-token", _SERVICES),
)
"""Those with a sign between how they begin and what follows."""

_LOOSE = (
    ("AIza", "google-api-key", rf"AIza{_W}{{35}}"),
    ("1//0", "google-oauth", rf"1//0{_W}{{40,120}}"),
    ("AKIA", "aws-access-key-id", r"AKIA[A-Z0-9]{16}"),
    ("ASIA", "aws-access-key-id", r"ASIA[A-Z0-9]{16}"),
    ("SK", "twilio-key", rf"SK{_H}{{32}}"),
    ("dapi", "service-token", rf"dapi{_H}{{32}}(?:-\d)?"),
    (":AA", "service-token", rf":AA{_W}{{33}}"),
    (
        "hooks.slack.com/",
        "slack-webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{20,100}",
    ),
    ("/api/webhooks/", "service-token", rf"/api/webhooks/\d{{16,20}}/{_W}{{40,100}}"),
    ("==", "azure-key", "=="),
)
"""The others, each with what to look for."""

_CANDIDATES = tuple(re.compile(sign + r"[A-Za-z0-9_-]{20,}") for sign in ("_", "-", r"\."))
"""One for each sign: `re` passes over what does not begin with the one letter that a pattern begins with."""
_BEGINNING = re.compile(
    r"(?:sk|SK|gh[pousr]|github|gl[a-z]{2,5}|xox[abeprs]|xapp|rk|whsec|npm|pypi|hf|api|SG|ya29|GOCSPX|do[opr]|dckr|gsk|xai|lin|shp[a-z]{2}"
    r"|hv[sbr]|glsa|r8|tvly|pplx|ntn|figd|rubygems|sbp|pcsk|lsv2|NRAK|PMAK|sq0[a-z]{3}|dp\.[a-z]{2}|pscale|ATATT3\w{0,12}|atlasv1"
    r"|sntry[su]|phc|AGE|FlyV1 fm\d|key|ak)$"
)
_ALL = re.compile("|".join(f"(?P<_{place}>{pattern})" for place, (_, pattern) in enumerate(_JOINED)))
_KIND = {f"_{place}": kind for place, (kind, _) in enumerate(_JOINED)}
_LONGEST_BEGINNING = 12
_AFTER = re.compile(r"[A-Za-z0-9]")
_BEFORE = re.compile(r"[A-Za-z0-9_]$")
_ESCAPE = re.compile(
    r"(?:\\[nrtbf]|\\u00[0-9a-fA-F]{2}|(?:\x1b|\\u001[bB]|\\x1[bB]|\\033|\\e)\[[\d;]*m|%[2-7][0-9A-Fa-f])$"
)
"""What may stand before a token and end in a letter: a line feed that is written out, a colour."""
_JWT_START = "eyJ"
ANCHORS = (_JWT_START, *(anchor for anchor, _, _ in _LOOSE))
_JWT = re.compile(rf"eyJ{_W}{{8,}}+(\.eyJ{_W}{{8,}}+\.{_W}{{10,}}+)?")
"""A JSON web token, or a run of letters that begins like one, which is passed over as a whole."""
_RULES = tuple((anchor, kind, re.compile(pattern)) for anchor, kind, pattern in _LOOSE)
_AZURE = re.compile(r"(?<![A-Za-z0-9+/=,-])[A-Za-z0-9+/]{86}==(?!=)")
_AZURE_LENGTH = 86
_TELEGRAM = re.compile(r"(?<!\d)\d{8,10}$")


def tokens(text: str, budget: Budget) -> Iterator[Finding]:
    """Yield what gives itself away."""
    yield from _joined(text, budget)
    yield from _web_tokens(text)
    for anchor, kind, rule in _RULES:
        place = text.find(anchor)
        while place >= 0:
            found = rule.match(text, place)
            budget.spend(found.end() - place if found else _LONGEST_BEGINNING)
            start = _start(text, place, anchor) if found else None
            if found and start is not None and _stands_alone(text, start, found.end(), anchor):
                yield Finding(start, found.end(), kind)
            place = text.find(anchor, found.end() if found else place + len(anchor))


def _web_tokens(text: str) -> Iterator[Finding]:
    """Yield JSON web tokens."""
    for found in _JWT.finditer(text) if _JWT_START in text else ():
        if found[1] and _stands_alone(text, found.start(), found.end(), _JWT_START):
            yield Finding(found.start(), found.end(), "jwt")


def _joined(text: str, budget: Budget) -> Iterator[Finding]:
    """Yield tokens with a sign in them: found by the sign and the long run behind it, then by how they begin."""
    for candidate in chain.from_iterable([pattern.finditer(text) for pattern in _CANDIDATES]):
        place = candidate.start()
        budget.spend(_LONGEST_BEGINNING)
        beginning = _BEGINNING.search(text, max(0, place - _LONGEST_BEGINNING), place)
        found = _ALL.match(text, beginning.start()) if beginning else None
        budget.spend(found.end() - found.start() if found else 0)
        if not found or found.end() <= place:
            continue
        if _stands_alone(text, found.start(), found.end(), "") and not is_hint(found[0]):
            yield Finding(found.start(), found.end(), _KIND[found.lastgroup or ""])


def _start(text: str, place: int, anchor: str) -> int | None:
    """Return where a token begins that was found by what stands in its middle."""
    if anchor == "==":
        key = _AZURE.match(text, place - _AZURE_LENGTH) if place >= _AZURE_LENGTH else None
        return key.start() if key else None
    if anchor == ":AA":
        number = _TELEGRAM.search(text, max(0, place - 11), place)
        return number.start() if number else None
    if anchor == "hooks.slack.com/":
        scheme = text.rfind("http", max(0, place - 12), place)
        return scheme if scheme >= 0 else place
    return place


def _stands_alone(text: str, start: int, end: int, anchor: str) -> bool:
    """Whether a token is no piece of something longer, such as an image in base64."""
    if anchor in ("/api/webhooks/", "hooks.slack.com/"):
        return True
    if _AFTER.match(text, end):
        return False
    return not _BEFORE.search(text, max(0, start - 1), start) or bool(
        _ESCAPE.search(text, max(0, start - 16), start)
    )

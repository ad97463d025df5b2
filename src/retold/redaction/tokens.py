"""Tokens: secrets with a fixed beginning, alphabet and length."""

import re
from collections.abc import Iterator
from itertools import chain

from retold.redaction.rules import Budget, compile_words, find_words
from retold.redaction.secrets import Secret, has_dummy_marker

_W = r"[A-Za-z0-9_-]"
_A = r"[A-Za-z0-9]"
_H = r"[0-9a-f]"
_UUID = rf"{_H}{{8}}-{_H}{{4}}-{_H}{{4}}-{_H}{{4}}-{_H}{{12}}"

_SERVICES = (
    rf"do[opr]_v1_{_H}{{64}}|dckr_(?:pat|oat)_{_W}{{20,40}}|gsk_{_A}{{40,64}}|xai-{_A}{{60,100}}"
    rf"|lin_(?:api|oauth)_{_A}{{32,64}}|shp(?:at|ca|pa|ss)_{_H}{{32}}|hv[sbr]\.{_W}{{24,200}}"
    rf"|glsa_{_A}{{32}}_{_H}{{8}}|r8_{_A}{{37}}|sk-or-v1-{_H}{{64}}|tvly-(?:dev-|prod-)?{_A}{{24,48}}"
    rf"|pplx-{_A}{{40,64}}|ntn_{_A}{{40,60}}|figd_{_W}{{40,60}}|rubygems_{_H}{{48}}|sbp_{_H}{{40}}"
    rf"|pcsk_{_W}{{40,100}}|lsv2_(?:pt|sk)_{_H}{{32}}_{_H}{{10}}|NRAK-[A-Z0-9]{{27}}|PMAK-{_H}{{24}}-{_H}{{34}}"
    rf"|sq0(?:atp|csp|idp)-{_W}{{22,43}}|dp\.(?:pt|st|ct|sa)\.{_W}{{40,44}}|pscale_(?:tkn|pw|oauth)_{_W}{{32,64}}"
    rf"|ATATT3{_W}{{60,250}}=?{_H}{{0,8}}|atlasv1\.{_W}{{60,70}}|sntry[su]_{_W}{{40,200}}|phc_{_A}{{40,48}}"
    rf"|AGE-SECRET-KEY-1[A-Z0-9]{{58}}|FlyV1 fm\d_{_W}{{40,}}|key-{_H}{{32}}|SK-{_W}{{40,64}}|ak_live_{_A}{{24,64}}"
    rf"|fo1_{_W}{{40,50}}|fm[12][ar]?_[A-Za-z0-9+/=_,-]{{60,4000}}|nfp_{_A}{{36,44}}|sq[pua]_{_H}{{40}}|sl\.(?:u\.)?{_W}{{60,1500}}"
    rf"|dp\.(?:pt|st|ct|sa|scim|audit)\.[a-z0-9_-]{{2,35}}\.{_W}{{40,44}}|CCI(?:PAT|PRJ)_{_A}{{22}}_{_H}{{40}}|bkua_{_H}{{40}}"
    rf"|glc_[A-Za-z0-9+/]{{32,400}}={{0,2}}|pul-{_H}{{40}}|xkeysib-{_H}{{64}}-{_A}{{16}}|pat{_A}{{14}}\.{_H}{{64}}"
    rf"|sk\.eyJ{_W}{{20,400}}\.{_W}{{20,60}}|CLOJARS_{_A}{{60}}|aio_{_A}{{28}}|rdme_{_A}{{70}}|pnu_{_A}{{36}}"
    rf"|duffel_(?:test|live)_{_W}{{43}}|sgp_(?:{_A}{{16}}_)?{_H}{{40}}|shippo_live_{_H}{{40}}|tfp_{_A}{{40,50}}(?:_{_A}{{14,20}})?"
    rf"|tskey-(?:auth|api|client|scim|webhook)-{_A}{{8,24}}-{_A}{{20,40}}|AVNS_{_W}{{19,40}}|nvapi-{_W}{{60,80}}|apify_api_{_A}{{36}}"
    rf"|dt0[a-z]\d\d\.{_A}{{24}}\.{_A}{{64}}|CFPAT-{_W}{{43}}|HRKU-AA{_W}{{58}}|fio-u-{_W}{{64}}|EZ[AT]K{_A}{{54}}"
    rf"|FLWSECK-{_A}{{32}}-X|sm_aat_{_A}{{16,32}}|pat-(?:na|eu)\d-{_UUID}|s-s4t2(?:ud|af)-{_H}{{64}}|ph[xs]_{_A}{{40,48}}"
    rf"|sb_secret_{_W}{{30,50}}|napi_{_A}{{40,70}}|dd[pw]_{_A}{{36}}|ico-{_A}{{32}}|sk_{_H}{{48}}|gho_{_A}{{36}}"
    rf"|access-(?:production|development|sandbox)-{_UUID}|API-[A-Z0-9]{{26}}|pscale_{_W}{{40,64}}|v2\.local\.{_W}{{60,400}}"
)
_WITH_SIGN = (
    ("openai-key", rf"sk-(?:proj|svcacct|admin|None)-{_W}{{40,200}}|sk-{_A}{{32,64}}"),
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
    ("service-token", _SERVICES + rf"|[MNO]\w{{22,27}}\.[\w-]{{5,7}}\.{_W}{{27,44}}"),
)
"""Tokens with a sign after their beginning."""

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
    ("FlyV1 ", "service-token", r"FlyV1 fm\d[ar]?_[A-Za-z0-9+/=_,-]{40,4000}"),
    (":APA91b", "service-token", rf":APA91b{_W}{{100,200}}"),
)
"""Other tokens: the word to search for, the kind, and the pattern."""

_RUNS = (
    ("azure-key", re.compile(r"(?<![A-Za-z0-9+/=,-])[A-Za-z0-9+/]{86}==(?!=)")),
    ("service-token", re.compile(rf"(?<![A-Za-z0-9_+/=-])EAA{_W}{{57,400}}(?![A-Za-z0-9+/=])")),
    ("service-token", re.compile(r"(?<![A-Za-z0-9_+/=-])A{20,24}[A-Za-z0-9%]{60,120}(?![A-Za-z0-9+/=])")),
    ("service-token", re.compile(rf"(?<![A-Za-z0-9_+/=-]){_H}{{32}}-us\d{{1,2}}(?!\w)")),
)
"""Tokens that begin with a long run of letters and digits."""
_RUN_STARTS, _RUN_ENDS = ("EAA", "AAAAAAAAAA"), ("==", "-us")
"""The beginnings of such runs, and the texts after them."""
_CANDIDATES = tuple(re.compile(sign + r"[A-Za-z0-9_-]{20,}") for sign in ("_", "-", r"\."))
"""One pattern for each sign, because `re` is fast if a pattern begins with one fixed character."""
_WORDS = frozenset(
    (  # noqa: SIM905 - a list of so many takes a line for each
        "sk SK ghp gho ghu ghs ghr github xoxa xoxb xoxe xoxp xoxr xoxs xapp rk whsec npm pypi hf api SG ya29 GOCSPX dop "
        "doo dor dckr gsk xai lin shpat shpca shppa shpss hvs hvb hvr glsa r8 tvly pplx ntn figd rubygems sbp pcsk lsv2 "
        "NRAK PMAK sq0atp sq0csp sq0idp pscale atlasv1 sntrys sntryu phc phx phs AGE key ak fo1 fm1 fm2 fm1a fm1r nfp sqp "
        "squ sqa sl CCIPAT CCIPRJ bkua glc pul xkeysib CLOJARS aio rdme pnu duffel sgp shippo tfp tskey AVNS nvapi apify "
        "CFPAT HRKU fio FLWSECK sm pat s sb napi ddp ddw ico access API EZAK EZTK glpat glptt gldt glrt glcbt glft glsoat "
        "glagent glimt glfeed "
    ).split()
)
"""The words before the first sign of a token."""
_RUN = re.compile(r"[A-Za-z0-9]*")
_BEGINNING = re.compile(rf"(?:{'|'.join(sorted(_WORDS))})$")
_UNUSUAL = re.compile(
    r"(?:ATATT3\w{0,12}|dt0[a-z]\d\d|pat\w{14}|(?<![A-Za-z0-9])dp\.[a-z]{2,5}(?:\.[a-z0-9_-]{2,35})?|sl\.u|v2\.local|[MNO]\w{22,27}\.[\w-]{5,7})$"
)
"""Beginnings that end before a dot, or that are no fixed words."""
_ALL = re.compile("|".join(f"(?P<_{place}>{pattern})" for place, (_, pattern) in enumerate(_WITH_SIGN)))
_KIND = {f"_{place}": kind for place, (kind, _) in enumerate(_WITH_SIGN)}
_LONGEST_BEGINNING, _LONGEST_WORD = 40, 12
_AFTER = re.compile(r"[A-Za-z0-9]")
_BEFORE = re.compile(r"[A-Za-z0-9_]$")
_ESCAPE = re.compile(
    r"(?:\\[nrtbf]|\\u00[0-9a-fA-F]{2}|(?:\x1b|\\u001[bB]|\\x1[bB]|\\033|\\e)\[[\d;]*m|%[2-7][0-9A-Fa-f])$"
)
"""Escapes that may precede a token and end in a letter: a line feed, a colour code."""
_JWT_START = "eyJ"
ANCHORS = (_JWT_START, *(anchor for anchor, _, _ in _LOOSE))
_ANCHORED = compile_words(ANCHORS)
_JWT = re.compile(rf"eyJ{_W}{{8,}}+(\.eyJ{_W}{{8,}}+\.{_W}{{10,}}+)?")
"""A JSON web token, or a run of letters that begins like one and is skipped as a whole."""
_RULES = tuple((anchor, kind, re.compile(pattern)) for anchor, kind, pattern in _LOOSE)
_FIREBASE = re.compile(r"[A-Za-z0-9_-]{8,30}$")
_TELEGRAM = re.compile(r"(?<!\d)\d{8,10}$")


def find_tokens(text: str, budget: Budget) -> Iterator[Secret]:
    """Yield the tokens of all services."""
    yield from _find_with_sign(text, budget)
    positions = find_words(_ANCHORED, text)
    if _JWT_START in positions:
        yield from _web_tokens(text)
    for anchor, kind, rule in _RULES:
        done = 0
        for place in positions.get(anchor, ()):
            if place < done:
                continue
            found = rule.match(text, place)
            budget.spend(found.end() - place if found else _LONGEST_WORD)
            start = _start(text, place, anchor) if found else None
            if found and start is not None and _stands_alone(text, start, found.end(), anchor):
                yield Secret(start, found.end(), kind)
            done = found.end() if found else 0


def find_run_token(text: str, start: int, end: int) -> Secret | None:
    """Return the token that begins with a run of letters and digits; None if there is none."""
    if text.startswith(_RUN_STARTS, start) or text.startswith(_RUN_ENDS, end):
        for kind, rule in _RUNS:
            found = rule.match(text, start)
            if found:
                return Secret(*found.span(), kind)
    return None


def _web_tokens(text: str) -> Iterator[Secret]:
    """Yield JSON web tokens."""
    for found in _JWT.finditer(text):
        if found[1] and _stands_alone(text, found.start(), found.end(), _JWT_START):
            yield Secret(found.start(), found.end(), "jwt")


def _find_with_sign(text: str, budget: Budget) -> Iterator[Secret]:
    """Yield tokens with a sign in them, which are found by the sign and the long run after it."""
    for candidate in chain.from_iterable([pattern.finditer(text) for pattern in _CANDIDATES]):
        place = candidate.start()
        budget.spend(_LONGEST_WORD)
        start = _beginning(text, place)
        found = _ALL.match(text, start) if start is not None else None
        budget.spend(found.end() - found.start() if found else 0)
        if not found or found.end() <= place:
            continue
        if _stands_alone(text, found.start(), found.end(), "") and not has_dummy_marker(found[0]):
            yield Secret(found.start(), found.end(), _KIND[found.lastgroup or ""])


def _beginning(text: str, place: int) -> int | None:
    """Return the position where a token with its first sign at `place` may begin; None if none does."""
    before = text[max(0, place - _LONGEST_BEGINNING) : place]
    run = _RUN.match(before[::-1])
    length = run.end() if run else 0
    if before[len(before) - length :] in _WORDS:
        return place - length
    if text[place] == "." or "AT" in before:
        unusual = _UNUSUAL.search(before)
        if unusual:
            return place - len(before) + unusual.start()
    if "\\" in before or "\x1b" in before or "%" in before:
        beginning = _BEGINNING.search(before, max(0, len(before) - _LONGEST_WORD))
        return place - len(before) + beginning.start() if beginning else None
    return None


def _start(text: str, place: int, anchor: str) -> int | None:
    """Return the beginning of a token that was found by a word in its middle; None if it has none."""
    if anchor == ":AA":
        number = _TELEGRAM.search(text, max(0, place - 11), place)
        return number.start() if number else None
    if anchor == ":APA91b":
        before = _FIREBASE.search(text, max(0, place - 33), place)
        return before.start() if before else None
    if anchor == "hooks.slack.com/":
        scheme = text.rfind("http", max(0, place - 12), place)
        return scheme if scheme >= 0 else place
    return place


def _stands_alone(text: str, start: int, end: int, anchor: str) -> bool:
    """Return whether a token is no piece of something longer, such as an image in base64."""
    if anchor in ("/api/webhooks/", "hooks.slack.com/"):
        return True
    if _AFTER.match(text, end):
        return False
    if anchor == ":AA" and text.startswith("bot", start - 3):
        return True
    return not _BEFORE.search(text, max(0, start - 1), start) or bool(
        _ESCAPE.search(text, max(0, start - 16), start)
    )

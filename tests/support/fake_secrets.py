"""Fake secrets: random characters in the shapes of real ones, the same in every run."""

import base64
import string
from collections.abc import Callable
from random import Random

ALNUM = string.ascii_letters + string.digits
WORDY = ALNUM + "_-"
UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
BASE64 = ALNUM + "+/"

WORDS = ("Amsel", "Birke", "Copper", "Dorsal", "Ember", "Falter", "Gravel", "Hollow", "Iris", "Juniper")
NAMES = (
    "anneli",
    "tkowalski",
    "m.okafor",
    "jbergström",
    "priya_n",
    "lunaweber",
    "oskarsen",
    "qi.zhang",
    "vdubois42",
)
HOSTS = ("kastanie-labs.io", "nordwind.dev", "mail.quarzwerk.de", "pinecrest.co.uk", "halden.systems")


def _run(alphabet: str, length: int) -> Callable[[Random], str]:
    return lambda dice: "".join(dice.choices(alphabet, k=length))


def _after(prefix: str, alphabet: str, length: int, end: str = "") -> Callable[[Random], str]:
    return lambda dice: prefix + _run(alphabet, length)(dice) + end


def _one(*makers: Callable[[Random], str]) -> Callable[[Random], str]:
    return lambda dice: dice.choice(makers)(dice)


def _numbers(dice: Random, length: int = 12) -> str:
    return "".join(dice.choices(string.digits, k=length))


def _password(dice: Random) -> str:
    """Return a password as people choose them (words, digits, signs) or as a password manager makes them."""
    first, second = dice.sample(WORDS, 2)
    number, sign = dice.randrange(10, 9999), dice.choice("!#$%*.+?")
    made = "".join(dice.choices(ALNUM + "!#%*+-.?^~", k=dice.randrange(12, 22)))
    return dice.choice(
        (f"{first}{second}{number}{sign}", f"{first.lower()}-{second.lower()}-{number}", "x" + made)
    )


def _wild_password(dice: Random) -> str:
    """Return a password with characters that JSON and URLs must escape."""
    return (
        f'{dice.choice(WORDS)}"{dice.randrange(100, 999)}/\\{dice.choice(WORDS)}&{dice.randrange(100, 999)}'
    )


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _encoded_url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _jwt(dice: Random) -> str:
    subject, issued = _numbers(dice, 10), 1_700_000_000 + dice.randrange(10**7)
    return ".".join(
        (
            _encoded_url('{"alg":"HS256","typ":"JWT"}'),
            _encoded_url(f'{{"sub":"{subject}","iat":{issued},"role":"editor"}}'),
            _run(WORDY, 43)(dice),
        )
    )


def _wrapped(start: str, length: int, width: int) -> Callable[[Random], str]:
    """Return a maker of PEM block bodies, without the BEGIN and END lines, which are not secret."""

    def body(dice: Random) -> str:
        text = start + _run(BASE64, length)(dice) + "="
        return "\n".join(text[place : place + width] for place in range(0, len(text), width))

    return body


SHAPES: dict[str, Callable[[Random], str]] = {
    "google-api-key": _after("AIzaSy", WORDY, 33),
    "google-oauth": _one(
        _after("ya29.a0", WORDY, 140), _after("GOCSPX-", WORDY, 28), _after("1//0g", WORDY, 90)
    ),
    "openai-key": _one(
        _after("sk-", ALNUM, 48),
        lambda dice: f"sk-proj-{_run(WORDY, 58)(dice)}T3BlbkFJ{_run(WORDY, 58)(dice)}",
        lambda dice: f"sk-svcacct-{_run(WORDY, 58)(dice)}T3BlbkFJ{_run(WORDY, 58)(dice)}",
    ),
    "anthropic-key": _one(_after("sk-ant-api03-", WORDY, 93, "AA"), _after("sk-ant-oat01-", WORDY, 93, "AA")),
    "aws-access-key-id": _one(
        _after("AKIA", string.ascii_uppercase + "234567", 16), _after("ASIA", UPPER, 16)
    ),
    "aws-secret-key": _run(BASE64, 40),
    "github-token": _one(
        _after("ghp_", ALNUM, 36),
        _after("gho_", ALNUM, 36),
        _after("ghs_", ALNUM, 36),
        lambda dice: f"github_pat_{_run(UPPER, 22)(dice)}_{_run(ALNUM, 59)(dice)}",
    ),
    "gitlab-token": _one(_after("glpat-", WORDY, 20), _after("glptt-", HEX, 40), _after("gldt-", WORDY, 20)),
    "slack-token": _one(
        lambda dice: f"xoxb-{_numbers(dice)}-{_numbers(dice, 13)}-{_run(ALNUM, 24)(dice)}",
        lambda dice: f"xoxp-{_numbers(dice)}-{_numbers(dice)}-{_numbers(dice)}-{_run(HEX, 32)(dice)}",
        lambda dice: f"xapp-1-A{_run(UPPER, 10)(dice)}-{_numbers(dice, 13)}-{_run(HEX, 64)(dice)}",
    ),
    "slack-webhook": lambda dice: (
        f"https://hooks.slack.com/services/T{_run(UPPER, 9)(dice)}/B{_run(UPPER, 10)(dice)}/{_run(ALNUM, 24)(dice)}"
    ),
    "stripe-key": _one(
        _after("sk_live_", ALNUM, 24), _after("rk_live_", ALNUM, 24), _after("whsec_", ALNUM, 32)
    ),
    "npm-token": _after("npm_", ALNUM, 36),
    "pypi-token": _after("pypi-AgEIcHlwaS5vcmc", WORDY, 160),
    "huggingface-token": _after("hf_", string.ascii_letters, 34),
    "sendgrid-key": lambda dice: f"SG.{_run(WORDY, 22)(dice)}.{_run(WORDY, 43)(dice)}",
    "twilio-key": _after("SK", HEX, 32),
    "hex-secret": _run(HEX, 32),
    "azure-key": _after("", BASE64, 86, "=="),
    "azure-signature": _after("", ALNUM, 43, "%3D"),
    "service-token": _one(
        _after("dop_v1_", HEX, 64),
        _after("dckr_pat_", WORDY, 27),
        _after("gsk_", ALNUM, 52),
        _after("xai-", ALNUM, 80),
        _after("lin_api_", ALNUM, 40),
        _after("shpat_", HEX, 32),
        _after("hvs.", WORDY, 90),
        _after("glsa_", ALNUM, 32, "_0a1b2c3d"),
        _after("r8_", ALNUM, 37),
        _after("dapi", HEX, 32),
        _after("sk-or-v1-", HEX, 64),
        _after("tvly-dev-", ALNUM, 32),
        lambda dice: f"{_numbers(dice, 10)}:AA{_run(WORDY, 33)(dice)}",
    ),
    "pem-rsa": _wrapped("MIIEpAIBAAKCAQEA", 1560, 64),
    "pem-ec": _wrapped("MHcCAQEEI", 150, 64),
    "pem-openssh": _wrapped("b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ", 300, 70),
    "jwt": _jwt,
    "bearer-token": _run(WORDY, 40),
    "basic-auth": lambda dice: _encoded(f"svc-{dice.choice(WORDS).lower()}:{_password(dice)}"),
    "password": _password,
    "wild-password": _wild_password,
    "pin": lambda dice: f"{dice.choice(WORDS).lower()}{dice.randrange(10, 99)}",
    "cookie": _run(LOWER, 32),
    "secret": _one(_run(ALNUM, 40), _run(HEX, 64), _run(WORDY, 32), _after("", BASE64, 43, "=")),
    "email": lambda dice: (
        f"{dice.choice(NAMES).replace('ö', 'o')}{dice.choice(('', '+ci', '.work'))}@{dice.choice(HOSTS)}"
    ),
    "home": lambda dice: dice.choice(NAMES),
}
"""Makes a secret of each shape."""

KINDS = {
    "hex-secret": "secret",
    "azure-signature": "azure-key",
    "pem-rsa": "private-key",
    "pem-ec": "private-key",
    "pem-openssh": "private-key",
    "wild-password": "password",
    "pin": "password",
}
"""The kind under which a shape is counted, where it differs from the shape's name."""

SPEAKING = (
    "google-api-key", "google-oauth", "openai-key", "anthropic-key", "aws-access-key-id", "github-token", "gitlab-token",
    "slack-token", "slack-webhook", "stripe-key", "npm-token", "pypi-token", "huggingface-token", "sendgrid-key",
    "service-token", "jwt",
)  # fmt: skip
"""Shapes that a detector recognises in any context."""

# Harmless values with the same shapes of characters, for samples that must stay unchanged.
FILLER: dict[str, Callable[[Random], str]] = {
    "hex7": _run(HEX, 7),
    "hex12": _run(HEX, 12),
    "hex32": _run(HEX, 32),
    "hex40": _run(HEX, 40),
    "hex64": _run(HEX, 64),
    "b64-27": _after("", BASE64, 27, "="),
    "b64-43": _after("", BASE64, 43, "="),
    "b64-64": _run(BASE64, 64),
    "b64-86": _after("", BASE64, 86, "=="),
    "b64-600": _run(BASE64, 600),
    "alnum22": _run(ALNUM, 22),
    "alnum8": _run(LOWER, 8),
    "uuid": lambda dice: "-".join(_run(HEX, length)(dice) for length in (8, 4, 4, 4, 12)),
    "ulid": _after("01H", UPPER, 23),
}

"""A secret in a text: its kind and its place."""

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
"""What is looked for."""

PLACEHOLDER = re.compile(r"\[redacted:(?:" + "|".join(KINDS) + r"):\d+\]")
"""What stands in for a secret: nobody takes it for one, and neither do we."""


class Secret(NamedTuple):
    """A secret, from its first character to before the one after its last."""

    start: int
    end: int
    kind: str


class _Piece(Protocol):
    """What has a place in a text."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    def _replace(self, *, end: int) -> Self: ...


P = TypeVar("P", bound=_Piece)


def apart(pieces: list[P]) -> list[P]:
    """Return pieces in order, none over another: where two overlap, the first is as long as both."""
    pieces.sort(key=lambda piece: (piece.start, -piece.end))
    kept: list[P] = []
    for piece in pieces:
        if not kept or piece.start >= kept[-1].end:
            kept.append(piece)
        elif piece.end > kept[-1].end:
            kept[-1] = kept[-1]._replace(end=piece.end)
    return kept

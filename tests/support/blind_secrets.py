"""Blind sets: texts written before anybody measured them, to see how the rules do on what they were not made for."""

import base64
import re
import string
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Literal, NamedTuple
from urllib.parse import quote

from support.detector_score import Detector
from support.fake_secrets import ALNUM, BASE64, HEX, LOWER, UPPER, WORDY
from support.labelled_secrets import FOLDER

Blind = Literal["blind", "blind-2", "blind-3", "blind-4", "blind-5"]
Part = Literal["secrets", "harmless"]

_HEAD = re.compile(r"^=== (.+)\n", re.MULTILINE)
_RUN = re.compile("\u2039([a-zA-Z])([0-9]+)\u203a")
_SLOT = re.compile(r"«([\w-]+)(#\d)?\|([^»|]+)(?:\|(\w+))?»", re.DOTALL)
_ALPHABETS = {
    "a": ALNUM,
    "b": BASE64,
    "B": string.ascii_uppercase + "234567",
    "d": string.digits,
    "h": HEX,
    "l": LOWER,
    "p": LOWER + "!@#$%^&*(-_=+)",
    "u": UPPER,
    "U": UPPER,
    "w": WORDY,
    "X": "0123456789ABCDEF",
}
_STAND_INS = str.maketrans({"␛": "\x1b", "⍽": "\u200b"})


class BlindSecret(NamedTuple):
    """A secret of one or more pieces; it is caught if all pieces are hidden."""

    kind: str
    pieces: tuple[tuple[int, int], ...]


class BlindSample(NamedTuple):
    """A text and its secrets."""

    title: str
    text: str
    secrets: tuple[BlindSecret, ...]


class BlindScore(NamedTuple):
    """The result of a detector on one blind set."""

    secrets: int
    kinds: int
    caught: int
    harmless: int
    clean: int
    misses: tuple[str, ...]
    false_alarms: tuple[str, ...]

    @property
    def recall(self) -> float:
        return self.caught / self.secrets

    @property
    def left_alone(self) -> float:
        """The share of the harmless texts that stay unchanged."""
        return self.clean / self.harmless


@cache
def blind_samples(blind: Blind, part: Part) -> tuple[BlindSample, ...]:
    """Return the texts of one part of a blind set, filled with invented values."""
    _, *blocks = _HEAD.split((FOLDER / f"{blind}-{part}.txt").read_text(encoding="utf-8"))
    return tuple(
        _filled(title, body.translate(_STAND_INS).removesuffix("\n"))
        for title, body in zip(blocks[::2], blocks[1::2], strict=True)
    )


def blind_score(blind: Blind, detector: Detector) -> BlindScore:
    """Score a detector on a blind set."""
    caught, kinds, misses, alarms = 0, set(), [], []
    secret_samples, harmless = blind_samples(blind, "secrets"), blind_samples(blind, "harmless")
    for sample in secret_samples:
        hidden = {place for start, end in detector(sample.text) for place in range(start, end)}
        for secret in sample.secrets:
            kinds.add(secret.kind)
            if all(hidden.issuperset(range(start, end)) for start, end in secret.pieces):
                caught += 1
            else:
                misses.append(f"{secret.kind}: {sample.title}")
    alarms = [sample.title for sample in harmless if list(detector(sample.text))]
    total = sum(len(sample.secrets) for sample in secret_samples)
    return BlindScore(
        total, len(kinds), caught, len(harmless), len(harmless) - len(alarms), tuple(misses), tuple(alarms)
    )


def _filled(title: str, body: str) -> BlindSample:
    dice = Random(title)  # noqa: S311 - must be the same in every run
    text, place = "", 0
    found: dict[str, tuple[str, list[tuple[int, int]]]] = {}
    for number, slot in enumerate(_SLOT.finditer(body)):
        kind, ref, content, form = slot.groups()
        text += _randomized(body[place : slot.start()], dice)
        value = _form(_randomized(content, dice), form)
        found.setdefault(ref or str(number), (kind, []))[1].append((len(text), len(text) + len(value)))
        text += value
        place = slot.end()
    text += _randomized(body[place:], dice)
    return BlindSample(
        title, text, tuple(BlindSecret(kind, tuple(pieces)) for kind, pieces in found.values())
    )


def _randomized(text: str, dice: Random) -> str:
    """Replace each alphabet and number in single angle quotes by so many random characters."""

    def runs() -> Iterator[str]:
        place = 0
        for run in _RUN.finditer(text):
            yield text[place : run.start()]
            yield "".join(dice.choices(_ALPHABETS[run[1]], k=int(run[2])))
            place = run.end()
        yield text[place:]

    return "".join(runs())


def _form(value: str, form: str | None) -> str:
    """Return a value as programs print or encode it."""
    middle = len(value) // 2
    match form:
        case None:
            return value
        case "base64":
            return base64.b64encode(value.encode()).decode()
        case "percent":
            return quote(value, safe="").replace("_", "%5F").replace("-", "%2D")
        case "color":
            return f"{value[:8]}\x1b[m\x1b[K{value[8:]}"
        case "zero":
            return f"{value[:middle]}\u200b{value[middle:]}"
        case "break":
            return f"{value[:middle]}\n{value[middle:]}"
        case "soft":
            return f"{value[:middle]}=\n{value[middle:]}"
    raise ValueError(form)

"""The labelled set: texts as transcripts contain them, with every secret marked; one half is for tuning."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple
from urllib.parse import quote

from support.fake_secrets import FILLER, KINDS, SHAPES, SPEAKING

FOLDER = Path(__file__).parents[1] / "redaction" / "labelled"
Half = Literal["seen", "unseen"]
_HEAD = re.compile(r"^=== (seen|unseen): (.+)\n", re.MULTILINE)
_SLOT = re.compile(
    r"«(?P<shape>[\w-]+)(?::(?P<ref>\w+))?(?:@(?P<kind>[\w-]+))?(?:=(?P<literal>[^»|]+))?(?:\|(?P<form>\w+))?»"
)


class Label(NamedTuple):
    """A secret in a text, which redaction must remove."""

    kind: str
    start: int
    end: int
    value: str
    """The secret without escapes."""


class Sample(NamedTuple):
    """A text and its secrets."""

    name: str
    half: Half
    text: str
    labels: tuple[Label, ...]


@cache
def samples(half: Half) -> tuple[Sample, ...]:
    """Return the samples of one half; only the seen half is for tuning."""
    return tuple(sample for sample in _samples() if sample.half == half)


def hand_written_samples(half: Half) -> tuple[Sample, ...]:
    """Return the samples of one half without the contexts, which repeat for every kind of secret."""
    return tuple(sample for sample in samples(half) if not sample.name.startswith("contexts/"))


def _samples() -> Iterator[Sample]:
    for file in ("secrets", "harmless"):
        for half, title, body in _blocks(file):
            yield _filled(f"{file}/{title}", half, body)
    for half, title, body in _blocks("contexts"):
        for kind in SPEAKING:
            yield _filled(f"contexts/{title}/{kind}", half, body.replace("«any»", f"«{kind}:any»"))


def _blocks(file: str) -> Iterator[tuple[Half, str, str]]:
    _, *blocks = _HEAD.split((FOLDER / f"{file}.txt").read_text(encoding="utf-8"))
    for half, title, body in zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True):
        yield "seen" if half == "seen" else "unseen", title, body.replace("␛", "\x1b")


def _filled(name: str, half: Half, body: str) -> Sample:
    """Fill the slots of a text with invented values; equal references get equal values."""
    dice = Random(name)  # noqa: S311 - must be the same in every run
    known: dict[str, str] = {}
    text, labels, place = "", [], 0
    for slot in _SLOT.finditer(body):
        text += body[place : slot.start()]
        place = slot.end()
        shape = slot["shape"]
        maker = SHAPES.get(shape) or FILLER.get(shape)
        value = slot["literal"] or known.get(f"{shape}:{slot['ref']}") or (maker(dice) if maker else "")
        if slot["ref"]:
            known[f"{shape}:{slot['ref']}"] = value
        form = _form(value, slot["form"])
        kind = slot["kind"] or KINDS.get(shape, shape)
        if slot["kind"] or shape not in FILLER:
            labels.append(Label(kind, len(text), len(text) + len(form), value))
        text += form
    return Sample(name, half, text + body[place:], tuple(labels))


def _form(value: str, form: str | None) -> str:
    """Return a value in a notation, such as JSON, a URL or a diff."""
    lines = value.split("\n")
    match form:
        case None:
            return value
        case "json":
            return json.dumps(value)[1:-1]
        case "json2":
            return json.dumps(json.dumps(value)[1:-1])[1:-1]
        case "unicode":
            return "".join(
                f"\\u{ord(sign):04x}" if place % 3 == 1 else sign for place, sign in enumerate(value)
            )
        case "url":
            return quote(value, safe="")
        case "indent":
            return "\n".join("    " + line for line in lines)
        case "numbered":
            return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, 2))
        case "diff":
            return "\n".join("+" + line for line in lines)
    raise ValueError(form)

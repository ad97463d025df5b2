"""Data in base64 within texts: pictures, fonts, sealed thoughts. What cannot be read cannot be checked."""

import base64
import binascii
import re
from collections.abc import Iterator

from retold.redaction.detector import findings
from retold.redaction.rules import OverBudget

_WHOLE = re.compile(r"[A-Za-z0-9+/_-]++(?:\s{1,2}+[A-Za-z0-9+/_-]++)*+={0,2}+\s*+\Z")
"""Runs of base64 with breaks between them. Possessive: a match never goes back, so it takes linear time."""
_LINE = 60
"""Characters of a run that another one follows: encoders break no line before."""
_URI = re.compile(r";base64,([A-Za-z0-9+/_%=-]{200,})")
_RUN = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_RASTER = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")
"""How PNG, JPEG, GIF and WebP begin."""
SHORTEST = 200
_STEP = 500


def data_in(text: str, *, keep_images: bool, is_data: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the places of data that cannot be checked; `is_data` says that the text is known to be nothing else."""
    if (is_data or len(text) >= SHORTEST) and _is_whole(text):
        if not _is_harmless(text, keep_images=keep_images):
            yield 0, len(text)
        return
    if len(text) < SHORTEST:
        return
    for start, end in _data_runs(text):
        if not _is_harmless(text[start:end], keep_images=keep_images):
            yield start, end


def _is_whole(text: str) -> bool:
    """Return whether a text is nothing but base64, on one line or many."""
    return bool(_WHOLE.match(text)) and all(len(run) >= _LINE for run in text.split()[:-1])


def _data_runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the data of addresses, and runs so long that they cannot be words: they cross two steps."""
    done = 0
    for place in range(0, len(text) - _STEP, _STEP):
        stride = _RUN.match(text, place, place + _STEP) if place >= done else None
        if not stride or stride.end() < place + _STEP:
            continue
        start = place
        while start > done and _RUN.match(text, start - 1, start):
            start -= 1
        found = _RUN.match(text, start)
        done = found.end() if found else place
        yield start, done
    if ";base64," in text:
        yield from (uri.span(1) for uri in _URI.finditer(text) if uri.end(1) - uri.start(1) < 2 * _STEP)


def _is_harmless(data: str, *, keep_images: bool) -> bool:
    """Whether data is a picture that may stay, or a text without secrets."""
    if keep_images and data.startswith(_RASTER):
        return True
    try:
        told = base64.b64decode(data.translate({45: 43, 95: 47}) + "==").decode()
    except (binascii.Error, ValueError):
        return False
    try:
        return told.isprintable() and not findings(told)
    except OverBudget:
        return False

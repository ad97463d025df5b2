"""Which form a file has, told by how it begins.

Evidence: `docs/formats/codex.md`, section 3.
"""

import re
from pathlib import Path
from typing import Literal

from retold.agents.codex.raw import LINE_TYPES
from retold.model.problem import Problem, problem
from retold.reading.disk import Disk, OpenFile, open_file, printable, refusal
from retold.reading.json_decode import BOM

Form = Literal["lines", "items", "document", "history", "index"]
_HEAD = 4096
_TYPES = "|".join(sorted(LINE_TYPES))
_ENVELOPE = re.compile(rf'"type"\s*:\s*"(?:{_TYPES})"'.encode())
_PAYLOAD = re.compile(rb'"payload"\s*:\s*\{')
_TEXT = rb'"(?:[^"\\]|\\.)*"'
_BEGINNINGS: tuple[tuple[Form, re.Pattern[bytes]], ...] = (
    (
        "items",
        re.compile(
            rb'\{\s*"id"\s*:\s*%b\s*,\s*"timestamp"\s*:\s*%b\s*,\s*"instructions"\s*:' % (_TEXT, _TEXT)
        ),
    ),
    ("document", re.compile(rb'\{\s*"session"\s*:\s*\{')),
    ("history", re.compile(rb'\{\s*"session_id"\s*:\s*%b\s*,\s*"ts"\s*:\s*\d+\s*,\s*"text"\s*:' % _TEXT)),
    ("index", re.compile(rb'\{\s*"id"\s*:\s*%b\s*,\s*"thread_name"\s*:' % _TEXT)),
)


def form_of(path: Path, disk: Disk) -> Form | Problem:
    """Return the form of a file; a Problem where Codex did not write it, or nobody may read it."""
    file = open_file(path, disk)
    if isinstance(file, Problem):
        return file
    try:
        head = _head(file)
    except OSError as error:
        return refusal(path, error)
    finally:
        file.close()
    return form_in(head) or problem(
        "not-a-session", "no conversation in a form that Codex writes", printable(path)
    )


def _head(file: OpenFile) -> bytes:
    """Return how a file begins, behind the NUL bytes that a crash may have left there."""
    head = file.read(_HEAD)
    while head.startswith(b"\0"):
        head = head.lstrip(b"\0") or file.read(_HEAD)
    return head


def form_in(head: bytes) -> Form | None:
    """Return the form that begins so: the first lines may be long, but what tells it stands at their beginnings."""
    if _PAYLOAD.search(head) and _ENVELOPE.search(head):
        return "lines"
    start = head.removeprefix(BOM).lstrip()
    return next((form for form, pattern in _BEGINNINGS if pattern.match(start)), None)

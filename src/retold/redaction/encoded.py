"""Base64 of a few words: `echo UEFTU1dPUkQ9... | base64 -d`, values of Kubernetes secrets, the header of a proxy."""

import base64
import binascii
import re
import string
from collections.abc import Iterator, Sequence

_SIGNS = (string.ascii_letters + string.digits + "+/").encode()
_CLASSES = bytes(0x61 if sign in _SIGNS else 0x20 for sign in range(256))
"""Characters of base64 become one letter, all others a space."""
SHORTEST, LONGEST, LONGEST_BLOCK = 24, 1_000, 4_000
_BETWEEN = re.compile(r"\r?\n[ \t]{0,40}")
_FARTHEST = 43
_LAST = re.compile(r"\r?\n[ \t]{0,40}([A-Za-z0-9+/]{1,76}={0,2})(?![A-Za-z0-9+/=])")
"""The last line of a block."""
_RUN = b"a" * SHORTEST
_TEXT = re.compile(r"(?:[CDI-Za-f][ACD-HQS-Xgi-nwyz0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/]){3}")
"""How printable ASCII begins in base64: the first bit of each of its bytes is zero."""
_PRINTABLE = frozenset(string.printable)


def runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of long runs of the characters of base64."""
    classes = text.encode("latin-1", "replace").translate(_CLASSES)
    start = classes.find(_RUN)
    while start >= 0:
        end = classes.find(b" ", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = classes.find(_RUN, end)


def encoded(text: str, start: int, end: int) -> tuple[int, str] | None:
    """Return where the padding of a run ends and which text the run is, if it is one."""
    plain = decoded(text[start:end]) if end - start <= LONGEST and _TEXT.match(text, start) else None
    return (end + _padding(text[end : end + 2]), plain) if plain else None


def blocks_of(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the places of base64 on several lines of one length, the last of which may be shorter; `lines` are its runs."""
    begin = 0
    for place, (start, end) in enumerate(lines):
        width = end - start
        after = lines[place + 1] if place + 1 < len(lines) else (len(text), len(text))
        goes_on = after[1] - after[0] == width and bool(_BETWEEN.fullmatch(text[end : after[0]][:_FARTHEST]))
        if width % 4 or not goes_on:
            last = _LAST.match(text, end) if width % 4 == 0 else None
            if last and len(last[1]) > width:
                last = None
            if last or place > begin:
                yield lines[begin][0], last.end() if last else end + _padding(text[end : end + 2])
            begin = place + 1


def encoded_block(text: str, start: int, end: int) -> tuple[int, str] | None:
    """Return where a block ends and which text it is, if it is one."""
    if end - start > LONGEST_BLOCK or not _TEXT.match(text, start):
        return None
    plain = decoded("".join(text[start:end].split()))
    return (end, plain) if plain else None


def _padding(after: str) -> int:
    return len(after) - len(after.lstrip("="))


def decoded(value: str) -> str | None:
    """Return the text of a value in base64; none if it is no printable ASCII."""
    bare = value.rstrip("=")
    try:
        plain = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return None
    return plain if _PRINTABLE.issuperset(plain) else None

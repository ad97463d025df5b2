"""Secrets in blocks of lines and in base64: private keys, Kubernetes secrets, JSON web keys, `.pgpass`, tables, encoded text."""

import base64
import binascii
import re
import string
from codecs import BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence

from retold.redaction.rules import Budget, WordPositions
from retold.redaction.secrets import Secret, is_argument, is_password, is_random

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
"""The beginning of printable ASCII in base64: the first bit of each of its bytes is zero."""
_ODD, _EVEN = r"[A-Za-f][AQgw][AB][A-Za-z0-9+/]", r"A[A-H][AEIMQUYcgkosw048]A"
_WIDE_TEXT = re.compile(rf"(?:{_ODD}{_EVEN}){{3}}|//[45][A-Za-z0-9+/](?:{_EVEN}{_ODD}){{3}}")
"""The beginning of printable ASCII in base64 of UTF-16, the form of commands for PowerShell."""
_PRINTABLE = frozenset(string.printable)


def find_base64_runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of long runs of characters of base64."""
    classes = text.encode("latin-1", "replace").translate(_CLASSES)
    start = classes.find(_RUN)
    while start >= 0:
        end = classes.find(b" ", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = classes.find(_RUN, end)


def decode_run(text: str, start: int, end: int) -> tuple[int, str] | None:
    """Return the end of a run's padding, and the text that the run encodes; None if it encodes none."""
    is_text = end - start <= LONGEST and (_TEXT.match(text, start) or _WIDE_TEXT.match(text, start))
    plain = decode_base64(text[start:end]) if is_text else None
    return (end + _padding(text[end : end + 2]), plain) if plain else None


def find_base64_blocks(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of base64 on several lines of one length, of which the last may be shorter; `lines` are the runs."""
    first = 0
    for number, (start, end) in enumerate(lines):
        width = end - start
        after = lines[number + 1] if number + 1 < len(lines) else (len(text), len(text))
        continues = after[1] - after[0] == width and bool(
            _BETWEEN.fullmatch(text[end : after[0]][:_FARTHEST])
        )
        if width % 4 or not continues:
            last = _LAST.match(text, end) if width % 4 == 0 else None
            if last and len(last[1]) > width:
                last = None
            if last or number > first:
                yield lines[first][0], last.end() if last else end + _padding(text[end : end + 2])
            first = number + 1


def decode_block(text: str, start: int, end: int) -> tuple[int, str] | None:
    """Return the end of a block and the text that it encodes; None if it encodes none."""
    if end - start > LONGEST_BLOCK or not _TEXT.match(text, start):
        return None
    plain = decode_base64("".join(text[start:end].split()))
    return (end, plain) if plain else None


def _padding(after: str) -> int:
    return len(after) - len(after.lstrip("="))


def decode_base64(value: str) -> str | None:
    """Return the text of a value in base64; None if it is not printable ASCII."""
    bare = value.rstrip("=")
    try:
        data = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True).removeprefix(BOM_UTF16_LE)
        plain = (data if any(data[1::2]) else data[::2]).decode("ascii")
    except (binascii.Error, ValueError):
        return None
    return plain if _PRINTABLE.issuperset(plain) else None


_PEM = re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_PEM_PIECES = re.compile(
    r"(?:(?:\\+[nr])*[\"'][ \t]{0,8}[+.,\\]?\s{0,80}[+.]?\s{0,8}[\"'][A-Za-z0-9+/=]{16,200})+"
)
_PEM_BODY = re.compile(
    r"(?:\\+[nrt]|[\s>|+]|\d{1,6}(?:\t|[:|] ?|→)|(?:Proc-Type|DEK-Info|Version|Comment): ?[^\n\\]*|[A-Za-z0-9+/=]{20,}|[A-Za-z0-9+/]*={0,2}(?=\s|\\|\"|'|$))+"
)
_LONGEST_BLOCK = 20_000
_SHORTEST_BODY = 40
_PEM_START, _PEM_LAST = "-----begin ", "-----end "
_PEM_LINE = re.compile(r"[ \t>|+\d:→]{0,16}[A-Za-z0-9+/=]{4,100}[ \t\r]{0,4}$")
_MOST_LINES, _LEAST_LENGTH, _LONGEST_LINE = 200, 40, 130
_MANIFESTS = ("kind: secret", '"kind": "secret"', '"kind":"secret"')
_BETWEEN_MANIFESTS = "\n---"
_LONGEST_MANIFEST = 8_000
_ENTRY = re.compile(r"[\w.-]{1,80}\"?: {0,4}[\"']?([A-Za-z0-9+/]{8,4000}={0,2})(?=[\"',\s}]|$)")
_PUTTY = re.compile(r"(?i)private-lines: \d{1,3}\s{1,4}((?:[A-Za-z0-9+/=]{1,64}\s{1,2}){1,200})")
_WEB_KEY = re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\"\s?:\s?\"([A-Za-z0-9_-]{20,1000})\"")
_LONGEST_WEB_KEY = 4_000
_PGPASS = re.compile(
    r"[^\s:#\"'`]{1,200}:(?:\d{2,5}|\*):[^\s:]{1,100}:[^\s:]{1,100}:(\S{1,200})$", re.MULTILINE
)
_LONGEST_HOST = 200
_KTY = "kty"
_PORTS = (":5432:", ":*:")

_RULERS = ("|--", "| --", "|:--", "| :--")
"""The beginnings of the line below the header of a Markdown table."""
_SECRET_COLUMN = re.compile(
    r"(?i)\W{0,4}(?:(pass(?:wor[dt]|wd|phrase)?|pwd?|mot de passe|kennwort)|[\w ]{0,20}(?:secret|token|api[ _-]?key))\W{0,4}"
)
_MOST_ROWS, _LONGEST_ROW = 100, 1_000

ANCHORS = (_PEM_START, _PEM_LAST, *_MANIFESTS, "private-lines", _KTY, *_PORTS, *_RULERS)
"""Words to search for in the lowercase text."""


def find_blocks(text: str, low: str, positions: WordPositions, budget: Budget) -> Iterator[Secret]:
    """Yield the secrets in blocks of lines, except for private keys with their first line."""
    for found in _matches(_PEM_END, text, positions.get(_PEM_LAST, ()), budget):
        yield from _lines_before(text, found.start(), budget)
    for found in _matches(_PUTTY, text, positions.get("private-lines", ()), budget):
        yield Secret(*found.span(1), "private-key")
    manifests = sorted(place for anchor in _MANIFESTS for place in positions.get(anchor, ()))
    yield from _manifests(text, low, manifests, budget)
    yield from _web_keys(text, positions.get(_KTY, ()), budget)
    yield from _password_files(text, positions, budget)
    yield from _tables(text, sorted(place for ruler in _RULERS for place in positions.get(ruler, ())), budget)


def _matches(
    pattern: re.Pattern[str], text: str, places: Iterable[int], budget: Budget
) -> Iterator[re.Match[str]]:
    for place in places:
        found = pattern.match(text, place)
        budget.spend(found.end() - place if found else 1)
        if found:
            yield found


def _lines_before(text: str, end: int, budget: Budget) -> Iterator[Secret]:
    """Yield the lines of base64 before the last line of a private key."""
    start = end
    for _ in range(_MOST_LINES):
        first = max(0, start - _LONGEST_LINE)
        line = text.rfind("\n", first, max(0, start - 1)) + 1
        budget.spend(start - first)
        if (not line and first) or start == 0 or not _PEM_LINE.match(text, line, start - 1):
            break
        start = line
    if end - start >= _LEAST_LENGTH:
        yield Secret(start, end - 1, "private-key")


def _manifests(text: str, low: str, places: Iterable[int], budget: Budget) -> Iterator[Secret]:
    """Yield the values of Kubernetes secrets that are base64 of a text."""
    done = 0
    for place in places:
        if place < done:
            continue
        start = max(done, place - _LONGEST_MANIFEST, low.rfind(_BETWEEN_MANIFESTS, done, place))
        after = low.find(_BETWEEN_MANIFESTS, place, place + _LONGEST_MANIFEST)
        done = after if after >= 0 else min(len(text), place + _LONGEST_MANIFEST)
        budget.spend(done - start)
        for entry in _ENTRY.finditer(text, max(start, low.find("data", start, done)), done):
            if decode_base64(entry[1]):
                yield Secret(*entry.span(1), "secret")


def _web_keys(text: str, places: Iterable[int], budget: Budget) -> Iterator[Secret]:
    """Yield the private members of JSON web keys."""
    done = 0
    for place in places:
        if place < done:
            continue
        start = max(done, text.rfind("{", max(0, place - _LONGEST_WEB_KEY), place))
        after = text.find("}", place, place + _LONGEST_WEB_KEY)
        done = after if after >= 0 else min(len(text), place + _LONGEST_WEB_KEY)
        budget.spend(done - start)
        for member in _WEB_KEY.finditer(text, start, done):
            yield Secret(*member.span(1), "secret")


def _password_files(text: str, positions: WordPositions, budget: Budget) -> Iterator[Secret]:
    """Yield the passwords in lines of `.pgpass`."""
    for port in _PORTS:
        for place in positions.get(port, ()):
            start = max(0, place - _LONGEST_HOST)
            start = max(start, text.rfind("\n", start, place) + 1)
            found = _PGPASS.match(text, start)
            budget.spend(found.end() - start if found else place - start + 1)
            if found and is_argument(found[1]):
                yield Secret(*found.span(1), "password")


def _tables(text: str, places: Iterable[int], budget: Budget) -> Iterator[Secret]:
    """Yield the values in the columns of Markdown tables with the header `password`, `token` or the like."""
    done = 0
    for place in places:
        budget.spend(1)
        if place < done or text[max(0, place - 1) : place] not in ("", "\n", " ", "\t", ">"):
            continue
        start = _line_start(text, place, done)
        header = _line_start(text, start - 1, done)
        budget.spend(place - header)
        if text[start:place].strip(" \t>"):
            continue
        columns = {
            number: bool(found[1])
            for number, (first, last) in enumerate(_cells(text, header, start - 1))
            if (found := _SECRET_COLUMN.fullmatch(text, first, last))
        }
        done = _line_end(text, place)
        for _ in range(_MOST_ROWS if columns else 0):
            row, done = done + 1, _line_end(text, done + 1)
            budget.spend(done - row + 1)
            if not text[row : row + 80].lstrip(" \t>").startswith("|"):
                break
            for number, (first, last) in enumerate(_cells(text, row, done)):
                value = text[first:last]
                if number in columns and (is_random(value) or (columns[number] and _is_cell(value))):
                    yield Secret(first, last, "password" if columns[number] else "secret")


def _is_cell(value: str) -> bool:
    return " " not in value and is_password(value, is_quoted=False)


def _line_start(text: str, place: int, first: int) -> int:
    """Return the start of a line, or a position so far before that the line is too long for a table."""
    first = max(first, place - _LONGEST_ROW, 0)
    return text.rfind("\n", first, max(place, 0)) + 1 or first


def _line_end(text: str, place: int) -> int:
    """Return the end of a line, or a position so far behind that the line is too long for a table."""
    last = min(len(text), place + _LONGEST_ROW)
    end = text.find("\n", place, last)
    return last if end < 0 else end


def _cells(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the cells of a row, without spaces and marks of code."""
    place = text.find("|", start, end)
    while place >= 0:
        after = text.find("|", place + 1, end)
        first, last = place + 1, end if after < 0 else after
        while first < last and text[first] in " \t`*\r":
            first += 1
        while last > first and text[last - 1] in " \t`*\r":
            last -= 1
        yield first, last
        place = after


def find_private_keys(text: str, low: str, seen: WordPositions, budget: Budget) -> Iterator[Secret]:  # noqa: ARG001 - as all finders
    """Yield the text between the first and the last line of a private key, or after the first if there is no last."""
    for place in seen.get(_PEM_START, ()):
        first = _PEM.match(text, place)
        if not first:
            continue
        longest = min(first.end() + _LONGEST_BLOCK, len(text))
        last = _PEM_END.search(text, first.end(), longest)
        body = _PEM_PIECES.match(text, first.end(), longest) or _PEM_BODY.match(text, first.end(), longest)
        budget.spend((last.end() if last else longest) - place)
        end = (
            last.start()
            if last and "-----BEGIN" not in text[first.end() : last.start()]
            else body.end()
            if body
            else 0
        )
        if end - first.end() >= _SHORTEST_BODY:
            yield Secret(first.end(), end, "private-key")

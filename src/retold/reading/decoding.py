"""JSON from bytes: fast where the bytes are good, and what can be saved where they are not.

`strict` in a result tells whether a strict parser (JavaScript's, which most agents use) would have taken the same
bytes; what only we could read belongs to the full view, not to what the agent itself loads.
"""

import json
import re
from typing import Any

import msgspec

DECODER = msgspec.json.Decoder()
BOM = b"\xef\xbb\xbf"

# Compiled when first needed, as few files need mending.
_ESCAPES = (
    r"(?s)\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    r"|\\."
)


class Decoded(msgspec.Struct, frozen=True):
    """A value, with what had to be mended to get it: (code, words) each."""

    value: Any
    strict: bool = True
    mended: tuple[tuple[str, str], ...] = ()


class Undecodable(msgspec.Struct, frozen=True):
    """Why these bytes are no value."""

    code: str
    message: str


def decode(data: bytes | memoryview) -> Decoded | Undecodable:
    """Return the JSON value in `data`, mended if need be; never raise for what it holds."""
    try:
        return Decoded(DECODER.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return mend(bytes(data), error)


def mend(data: bytes, error: Exception) -> Decoded | Undecodable:
    """Try again, slowly, with bad bytes and half surrogates replaced, wild numbers and control characters allowed."""
    if isinstance(error, RecursionError):
        return Undecodable("nested-too-deep", "nested deeper than can be decoded")
    text, mended = as_json_text(data)
    wild: list[str] = []
    for strict in (True, False):
        try:
            value = json.loads(
                text,
                strict=strict,
                parse_float=lambda digits: finite(digits, wild),
                parse_int=lambda digits: integer(digits, wild),
                parse_constant=reject,
            )
        except RecursionError:
            return Undecodable("nested-too-deep", "nested deeper than can be decoded")
        except ValueError:
            continue
        if wild:
            mended = (*mended, ("number-out-of-range", f"{wild[0][:40]} kept as text"))
        if not strict:
            mended = (*mended, ("malformed-json", "raw control characters inside a string"))
        return Decoded(value, strict=strict and not data.startswith(BOM), mended=mended)
    return Undecodable("malformed-json", str(error))


def as_text(data: bytes) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return bytes as text in which everything that is no character became U+FFFD, and a word about it."""
    try:
        return data.decode(), ()
    except UnicodeDecodeError as error:
        return data.decode(errors="replace"), (("replaced-bytes", f"no UTF-8 at byte {error.start}"),)


def as_json_text(data: bytes) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return bytes as JSON text without a byte order mark, in which every character and escape can be decoded.

    An escape is replaced by one of the same length, so offsets stay the same.
    """
    text, replaced = as_text(data.removeprefix(BOM))
    text, halved = _without_halves(text)
    return text, (*replaced, *halved)


def _without_halves(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return JSON in which every half of a surrogate pair became U+FFFD."""
    halves: list[str] = []
    text = re.sub(_ESCAPES, lambda match: _whole(match, halves), text)
    return text, (("replaced-bytes", f"half a surrogate pair: {halves[0]}"),) if halves else ()


def _whole(match: re.Match[str], halves: list[str]) -> str:
    if match[1] is None:
        return match[0]
    halves.append(match[1])
    return "\\ufffd"


def finite(digits: str, wild: list[str]) -> float | str:
    """Return a float, or the digits as text where it would be infinite; these are added to `wild`."""
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        wild.append(digits)
        return digits
    return value


def integer(digits: str, wild: list[str]) -> int | str:
    """Return an integer, or its digits as text where there are too many; these are added to `wild`."""
    try:
        return int(digits)
    except ValueError:  # more digits than Python converts
        wild.append(digits)
        return digits


def reject(constant: str) -> Any:
    """Refuse NaN and Infinity, which JSON does not have."""
    raise ValueError(f"{constant} is no JSON")

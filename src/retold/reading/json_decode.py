"""JSON from bytes: fast where the bytes are good, and what can be saved where they are not.

`strict` in a result tells whether a strict parser (JavaScript's, which most agents use) would have taken the same
bytes; what only we could read belongs to the full view, not to what the agent itself loads.
"""

import json
import re
from collections.abc import Callable, Iterator
from json import JSONDecodeError
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


FAILURES = 64
"""How often the search for the next whole element may fail: each failure can cost a scan of the rest."""

_SCANNER = json.JSONDecoder(
    strict=False,
    parse_float=lambda digits: finite(digits, []),
    parse_int=lambda digits: integer(digits, []),
    parse_constant=reject,
)
_SPACE = re.compile(r"[ \t\r\n]*")
_OBJECT = re.compile(r'\{\s*"(?:id|timestamp|type|content|role|parts)"\s*:')
"""How an element begins: with a field that every element may begin with."""


class Salvage(msgspec.Struct, frozen=True):
    """The fields read before the damage, the whole elements of the list, and where it broke (a character offset)."""

    fields: dict[str, Any]
    elements: list[Any]
    broken_at: int
    is_cut: bool
    """True when the document simply ends too early; False when it is damaged inside."""


def salvage(text: str, list_key: str | None, is_element: Callable[[Any], bool]) -> Salvage | None:
    """Return what is whole in a broken `{"…": …, list_key: [...]}` (or, with no key, in a broken list).

    Behind the damage only what `is_element` accepts counts: there, a nested object looks like an element.
    """
    position = skip_space(text, 0)
    fields: dict[str, Any] = {}
    opening = "[" if list_key is None else "{"
    if not text.startswith(opening, position):
        return None
    if list_key is not None:
        found = _fields_before(text, position + 1, list_key, fields)
        if found is None:
            return Salvage(fields, [], len(text), is_cut=True) if fields else None
        position = found
    elements: list[Any] = []
    broken_at = _elements(text, position + 1, elements)
    rest = list(_elements_after(text, broken_at + 1, is_element))
    return Salvage(fields, elements + rest, broken_at, is_cut=not rest)


def skip_space(text: str, position: int) -> int:
    """Return where the next thing begins that is not white space."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def value_at(text: str, position: int) -> tuple[Any, int] | None:
    """Return the JSON value that begins at `position`, and where it ends; None if none does.

    The text comes from `as_json_text`: no string of the value holds half a surrogate pair.
    """
    try:
        return _SCANNER.raw_decode(text, position)
    except (JSONDecodeError, RecursionError, ValueError):
        return None


def _fields_before(text: str, position: int, list_key: str, fields: dict[str, Any]) -> int | None:
    """Read `"key": value,` pairs into `fields`; return where the list of `list_key` opens."""
    while True:
        key = value_at(text, skip_space(text, position))
        if key is None or not isinstance(key[0], str):
            return None
        position = skip_space(text, key[1])
        if not text.startswith(":", position):
            return None
        position = skip_space(text, position + 1)
        if key[0] == list_key and text.startswith("[", position):
            return position
        value = value_at(text, position)
        if value is None:
            return None
        fields[key[0]] = value[0]
        position = skip_space(text, value[1])
        if not text.startswith(",", position):
            return None
        position += 1


def _elements(text: str, position: int, elements: list[Any]) -> int:
    """Append whole elements; return the offset where there were no more."""
    while True:
        start = skip_space(text, position)
        value = value_at(text, start)
        if value is None:
            return start
        elements.append(value[0])
        position = skip_space(text, value[1])
        if not text.startswith(",", position):
            return position
        position += 1


def _elements_after(text: str, position: int, is_element: Callable[[Any], bool]) -> Iterator[Any]:
    """Yield the elements that are whole behind the damage; only so many tries may fail."""
    failures = 0
    while failures < FAILURES:
        match = _OBJECT.search(text, position)
        if match is None:
            return
        value = value_at(text, match.start())
        if value is None:
            failures += 1
            position = match.start() + 1
        elif is_element(value[0]):
            found = [value[0]]
            end = skip_space(text, value[1])
            position = _elements(text, end + 1, found) if text.startswith(",", end) else end
            yield from found
        else:
            position = value[1]

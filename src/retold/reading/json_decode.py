"""Decodes JSON: quickly if the bytes are good, else with repairs; salvages parts of damaged documents.

`strict` in a result says whether a strict parser, such as JavaScript's in most agents, accepts the bytes. A value that only
retold can read belongs to the full view, not to what the agent loads.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from json import JSONDecodeError
from typing import Any, NamedTuple

import msgspec

from retold.model.problem import Problem, problem

DECODER = msgspec.json.Decoder()
BOM = b"\xef\xbb\xbf"

# Compiled at the first use, as few files need repairs.
_ESCAPES = (
    r"(?s)\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    r"|\\."
)


class Repair(NamedTuple):
    """A repair of JSON, as a problem's code and message."""

    code: str
    message: str


class JsonValue(msgspec.Struct, frozen=True):
    """A value with its repairs."""

    value: Any
    strict: bool = True
    repairs: tuple[Repair, ...] = ()


class JsonFailure(msgspec.Struct, frozen=True):
    """The reason why bytes are no JSON value."""

    code: str
    message: str


def repair_problems(repairs: Iterable[Repair], path: str, line: int | None = None) -> tuple[Problem, ...]:
    """Return the problems of repairs in a file."""
    return tuple([problem(code, message, path, line) for code, message in repairs])


def decode(data: bytes | memoryview) -> JsonValue | JsonFailure:
    """Return the JSON value in `data`, repaired if necessary; never raise for its content."""
    try:
        return JsonValue(DECODER.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return mend(bytes(data), error)


def mend(data: bytes, error: Exception) -> JsonValue | JsonFailure:
    """Decode again, slowly: replace bad bytes and half surrogates, allow numbers out of range and control characters."""
    if isinstance(error, RecursionError):
        return JsonFailure("nested-too-deep", "nested deeper than can be decoded")
    text, repairs = decode_json_text(data)
    wild: list[str] = []
    for strict in (True, False):
        try:
            value = json.loads(
                text,
                strict=strict,
                parse_float=lambda digits: parse_float(digits, wild),
                parse_int=lambda digits: parse_integer(digits, wild),
                parse_constant=reject_constant,
            )
        except RecursionError:
            return JsonFailure("nested-too-deep", "nested deeper than can be decoded")
        except ValueError:
            continue
        if wild:
            repairs = (*repairs, Repair("number-out-of-range", f"{wild[0][:40]} kept as text"))
        if not strict:
            repairs = (*repairs, Repair("malformed-json", "raw control characters inside a string"))
        return JsonValue(value, strict=strict and not data.startswith(BOM), repairs=repairs)
    return JsonFailure("malformed-json", str(error))


def decode_text(data: bytes) -> tuple[str, tuple[Repair, ...]]:
    """Return bytes as text with U+FFFD for every invalid byte, and a note about it."""
    try:
        return data.decode(), ()
    except UnicodeDecodeError as error:
        return data.decode(errors="replace"), (Repair("replaced-bytes", f"no UTF-8 at byte {error.start}"),)


def decode_json_text(data: bytes) -> tuple[str, tuple[Repair, ...]]:
    """Return bytes as JSON text without a byte order mark, in which every character and escape can be decoded.

    An escape is replaced by one of the same length, so offsets stay the same.
    """
    text, replaced = decode_text(data.removeprefix(BOM))
    text, halved = _replace_halves(text)
    return text, (*replaced, *halved)


def _replace_halves(text: str) -> tuple[str, tuple[Repair, ...]]:
    """Return JSON with U+FFFD for every half of a surrogate pair."""
    found: list[str] = []
    text = re.sub(_ESCAPES, lambda match: _replace_half(match, found), text)
    return text, (Repair("replaced-bytes", f"half a surrogate pair: {found[0]}"),) if found else ()


def _replace_half(match: re.Match[str], halves: list[str]) -> str:
    if match[1] is None:
        return match[0]
    halves.append(match[1])
    return "\\ufffd"


def parse_float(digits: str, wild: list[str]) -> float | str:
    """Return a float, or its digits as text if it is out of range; these are added to `wild`."""
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        wild.append(digits)
        return digits
    return value


def parse_integer(digits: str, wild: list[str]) -> int | str:
    """Return an integer, or its digits as text if there are too many; these are added to `wild`."""
    try:
        return int(digits)
    except ValueError:  # more digits than Python converts
        wild.append(digits)
        return digits


def reject_constant(constant: str) -> Any:
    """Refuse NaN and Infinity, which JSON does not have."""
    raise ValueError(f"{constant} is no JSON")


MOST_FAILURES = 64
"""How often the search for the next whole element may fail: each failure can cost a scan of the rest."""
_SCANNER = json.JSONDecoder(
    strict=False,
    parse_float=lambda digits: parse_float(digits, []),
    parse_int=lambda digits: parse_integer(digits, []),
    parse_constant=reject_constant,
)
_SPACE = re.compile(r"[ \t\r\n]*")
_OBJECT = re.compile(r'\{\s*"(?:id|timestamp|type|content|role|parts)"\s*:')
"""The start of an element: a field that every element may begin with."""


class Salvage(msgspec.Struct, frozen=True):
    """The fields before the damage, the whole elements of the list, and the character offset of the damage."""

    fields: dict[str, Any]
    elements: list[Any]
    broken_at: int
    is_cut: bool
    """Whether the document only ends too early; False if it is damaged inside."""


def salvage(text: str, list_key: str | None, is_element: Callable[[Any], bool]) -> Salvage | None:
    """Return the whole parts of a broken `{"…": …, list_key: [...]}` (or, with no key, of a broken list).

    Behind the damage only values that `is_element` accepts count, since there a nested object looks like an element.
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
    """Return the offset of the next character that is not white space."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def value_at(text: str, position: int) -> tuple[Any, int] | None:
    """Return the JSON value at `position`, and its end; None if there is none.

    The text comes from `decode_json_text`, so no string of the value holds half a surrogate pair.
    """
    try:
        return _SCANNER.raw_decode(text, position)
    except (JSONDecodeError, RecursionError, ValueError):
        return None


def _fields_before(text: str, position: int, list_key: str, fields: dict[str, Any]) -> int | None:
    """Read `"key": value,` pairs into `fields`; return the offset of the list of `list_key`."""
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
    """Append whole elements; return the offset behind the last one."""
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
    """Yield the whole elements behind the damage; only some attempts may fail."""
    failures = 0
    while failures < MOST_FAILURES:
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


def text_or_none(value: Any) -> str | None:
    """Return a text that is not empty; None for another value."""
    return value if type(value) is str and value else None


def to_json(value: Any) -> str:
    """Return a value as JSON text."""
    try:
        return msgspec.json.encode(value).decode()
    except (OverflowError, RecursionError):  # an integer of more than 64 bits
        return str(value)

"""What is left of a JSON document that is cut or damaged: every element that is whole."""

import json
import re
from collections.abc import Callable, Iterator
from json import JSONDecodeError
from typing import Any

import msgspec

from retold.reading.decoding import finite, integer, reject

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

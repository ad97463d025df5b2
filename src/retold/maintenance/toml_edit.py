"""A table put into TOML settings, and taken out again: all that stands around it keeps its bytes.

Nothing is believed of where a table begins and ends: what comes out must say the same as what went in, but for the table.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from retold.agents.protocol import NAME, SettingsTable
from retold.maintenance.json_edit import Broken

_HEADER = re.compile(r"[ \t]*\[\[?(?P<name>[^\[\]]+)\]\]?[ \t]*(?:#.*)?")
_KEY = re.compile(
    r"""[ \t]*(?:"(?P<double>[^"\\]*)"|'(?P<single>[^']*)'|(?P<bare>[\w-]+))[ \t]*(?:\.|$)""", re.ASCII
)

_BETWEEN = re.compile(r"\s*+(?:#.*+\s*+)?")
_MOST = 8
"""So many tables in a table are looked at."""
_NO_PLACE = "it is written in a way that leaves no place for a change"


def with_table(text: str | None, table: SettingsTable) -> str:
    """Return settings that have the table; raises Broken, also where another has its name."""
    if text is not None and has_table(text, table):
        return text
    before = "" if text is None else without_table(text, table)
    if _named(_decoded(before), table) is not None:
        raise Broken(f'"{".".join(table.keys)}" in it starts something else')
    end = "\r\n" if "\r\n" in before else "\n"
    gap = ("" if before.endswith("\n") else end) + end if before else ""
    after = before + gap + end.join(_told(table)) + end
    if not _says(after, _with(_decoded(before), table)):
        raise Broken(_NO_PLACE)
    return after


def without_table(text: str, table: SettingsTable) -> str:
    """Return settings without the table and those in it; one that starts something else stays. Raises Broken."""
    told = _decoded(text)
    found = _named(told, table)
    if found is None or not any(NAME in word for word in _words(found)):
        return text
    expected = _without(told, table)
    for after in _cuts(text, table):
        if _says(after, expected):
            return after
    raise Broken(_NO_PLACE)


def has_table(text: str, table: SettingsTable) -> bool:
    """Tell whether the settings have the table, whatever somebody has put beside its values; raises Broken."""
    found = _named(_decoded(text), table)
    return found is not None and {key: found.get(key) for key in table.value} == table.value


def _decoded(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Broken(str(error)) from error


def _named(told: dict[str, Any], table: SettingsTable) -> dict[str, Any] | None:
    outer = told.get(table.keys[0])
    found = outer.get(table.keys[1]) if isinstance(outer, dict) else None
    return found if isinstance(found, dict) else None


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [word for one in inside for word in _words(one)]


def _with(told: dict[str, Any], table: SettingsTable) -> dict[str, Any]:
    outer, inner = table.keys
    others = told.get(outer, {})
    return {**told, outer: {**others, inner: table.value} if isinstance(others, dict) else others}


def _without(told: dict[str, Any], table: SettingsTable) -> dict[str, Any]:
    outer, inner = table.keys
    left = {key: value for key, value in told[outer].items() if key != inner}
    rest = {key: value for key, value in told.items() if key != outer}
    return {**rest, outer: left} if left else rest


def _says(text: str, expected: dict[str, Any]) -> bool:
    """Tell whether settings say this; the table that ours was in may be left empty."""
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return told in (expected, {**expected, **{key: {} for key in told if key not in expected}})


def _told(table: SettingsTable) -> list[str]:
    return [f"[{'.'.join(table.keys)}]", *(f"{key} = {_value(value)}" for key, value in table.value.items())]


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _cuts(text: str, table: SettingsTable) -> Iterator[str]:
    """Yield the text without what may be lines of the table, all of them first: some may be a text that looks so."""
    lines = text.splitlines(keepends=True)
    blocks = list(_blocks(lines, table))[:_MOST]
    for size in range(len(blocks), 0, -1):
        for chosen in combinations(blocks, size):
            gone = {place for block in chosen for place in block}
            yield "".join(line for place, line in enumerate(lines) if place not in gone)


def _blocks(lines: list[str], table: SettingsTable) -> Iterator[range]:
    """Yield where the table stands, and each in it, from a blank line before to the last value."""
    headers = [
        (place, found)
        for place, line in enumerate(lines)
        if (found := _HEADER.fullmatch(line.rstrip("\r\n")))
    ]
    ends = [place for place, _ in headers[1:]] + [len(lines)]
    for (start, header), end in zip(headers, ends, strict=False):
        if _keys(header["name"])[:2] != table.keys:
            continue
        # What stands between two tables belongs to the later one.
        last = max(place for place in range(start, end) if not _BETWEEN.fullmatch(lines[place]))
        yield range(start - (start > 0 and not lines[start - 1].strip()), last + 1)


def _keys(name: str) -> tuple[str, ...]:
    keys, place = [], 0
    while place < len(name) and (found := _KEY.match(name, place)):
        keys.append(found["double"] or found["single"] or found["bare"] or "")
        place = found.end()
    return tuple(keys)

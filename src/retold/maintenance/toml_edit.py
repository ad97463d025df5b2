"""Edits of TOML settings: add a table or remove it, and leave all other bytes unchanged.

The position of a table is guessed from its lines. The result is accepted only if it parses to the expected settings.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from retold.agents.protocol import NAME, SettingsTable
from retold.maintenance.json_edit import MalformedSettings

_HEADER = re.compile(r"[ \t]*\[\[?(?P<name>[^\[\]]+)\]\]?[ \t]*(?:#.*)?")
_KEY = re.compile(
    r"""[ \t]*(?:"(?P<double>[^"\\]*)"|'(?P<single>[^']*)'|(?P<bare>[\w-]+))[ \t]*(?:\.|$)""", re.ASCII
)

_BETWEEN = re.compile(r"\s*+(?:#.*+\s*+)?")
_MOST = 8
"""The most tables within a table that are tried."""
_NO_PLACE = "it is written in a way that leaves no place for a change"


def with_table(text: str | None, table: SettingsTable) -> str:
    """Return settings with the table; raise MalformedSettings, also if another table has its name."""
    if text is not None and has_table(text, table):
        return text
    before = "" if text is None else without_table(text, table)
    if _find_table(_decode(before), table) is not None:
        raise MalformedSettings(f'"{".".join(table.keys)}" in it starts something else')
    end = "\r\n" if "\r\n" in before else "\n"
    gap = ("" if before.endswith("\n") else end) + end if before else ""
    after = before + gap + end.join(_format_table(table)) + end
    if not _is_same_settings(after, _add(_decode(before), table)):
        raise MalformedSettings(_NO_PLACE)
    return after


def without_table(text: str, table: SettingsTable) -> str:
    """Return settings without the table and those in it, unless it is not ours; raise MalformedSettings."""
    settings = _decode(text)
    found = _find_table(settings, table)
    if found is None or not any(NAME in word for word in _strings(found)):
        return text
    expected = _drop(settings, table)
    for after in _candidates(text, table):
        if _is_same_settings(after, expected):
            return after
    raise MalformedSettings(_NO_PLACE)


def has_table(text: str, table: SettingsTable) -> bool:
    """Return whether the settings have the table with our values, perhaps among others; raise MalformedSettings."""
    found = _find_table(_decode(text), table)
    return found is not None and {key: found.get(key) for key in table.value} == table.value


def _decode(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MalformedSettings(str(error)) from error


def _find_table(settings: dict[str, Any], table: SettingsTable) -> dict[str, Any] | None:
    outer = settings.get(table.keys[0])
    found = outer.get(table.keys[1]) if isinstance(outer, dict) else None
    return found if isinstance(found, dict) else None


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [word for one in inside for word in _strings(one)]


def _add(settings: dict[str, Any], table: SettingsTable) -> dict[str, Any]:
    outer, inner = table.keys
    others = settings.get(outer, {})
    return {**settings, outer: {**others, inner: table.value} if isinstance(others, dict) else others}


def _drop(settings: dict[str, Any], table: SettingsTable) -> dict[str, Any]:
    outer, inner = table.keys
    left = {key: value for key, value in settings[outer].items() if key != inner}
    rest = {key: value for key, value in settings.items() if key != outer}
    return {**rest, outer: left} if left else rest


def _is_same_settings(text: str, expected: dict[str, Any]) -> bool:
    """Return whether a text parses to these settings; the table around ours may be left empty."""
    try:
        settings = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return settings in (expected, {**expected, **{key: {} for key in settings if key not in expected}})


def _format_table(table: SettingsTable) -> list[str]:
    return [
        f"[{'.'.join(table.keys)}]",
        *(f"{key} = {_format_value(value)}" for key, value in table.value.items()),
    ]


def _format_value(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_format_value(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _candidates(text: str, table: SettingsTable) -> Iterator[str]:
    """Yield the text without what may be lines of the table: without all of them first, as some may be inside strings."""
    lines = text.splitlines(keepends=True)
    blocks = list(_find_blocks(lines, table))[:_MOST]
    for size in range(len(blocks), 0, -1):
        for chosen in combinations(blocks, size):
            gone = {place for block in chosen for place in block}
            yield "".join(line for place, line in enumerate(lines) if place not in gone)


def _find_blocks(lines: list[str], table: SettingsTable) -> Iterator[range]:
    """Yield the lines of the table and of each table in it, from a blank line before to the last value."""
    headers = [
        (place, found)
        for place, line in enumerate(lines)
        if (found := _HEADER.fullmatch(line.rstrip("\r\n")))
    ]
    ends = [place for place, _ in headers[1:]] + [len(lines)]
    for (start, header), end in zip(headers, ends, strict=False):
        if _parse_keys(header["name"])[:2] != table.keys:
            continue
        # Comments between two tables belong to the later one.
        last = max(place for place in range(start, end) if not _BETWEEN.fullmatch(lines[place]))
        yield range(start - (start > 0 and not lines[start - 1].strip()), last + 1)


def _parse_keys(name: str) -> tuple[str, ...]:
    keys, place = [], 0
    while place < len(name) and (found := _KEY.match(name, place)):
        keys.append(found["double"] or found["single"] or found["bare"] or "")
        place = found.end()
    return tuple(keys)

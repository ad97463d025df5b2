"""Text put into JSON with comments, and taken out again: all that stands around it keeps its bytes."""

import json
import re
from collections.abc import Mapping
from typing import Any

from retold.care.jsonc import JsonNode, Member, after_trivia

_BESIDE = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?:[ \t]*//[^\r\n]*)?")
"""Comments behind something, on its line."""
_LINE_START = re.compile(r"\r?\n[ \t]*\Z")
_UNIT = "  "

Value = Mapping[str, Any] | list[Any] | str


def put(text: str, root: JsonNode, container: JsonNode, key: str | None, value: Value) -> str:
    """Return the text with a value at the end of an object or array, in the manner of its neighbours."""
    return (_append if container.members else _fill)(text, root, container, key, value)


def _append(text: str, root: JsonNode, container: JsonNode, key: str | None, value: Value) -> str:
    is_tall = "\n" in text[container.start : container.end]
    last = container.members[-1].end
    comma = after_trivia(text, last)
    is_ended = text[comma] == ","
    place = _after_comments(text, comma + 1 if is_ended else last)
    indent = _indent(text, root, container)
    before = _line_end(text) + indent if is_tall else " "
    told = before + _told(text, root, key, value, indent if is_tall else None) + ("," if is_ended else "")
    return text[:last] + ("" if is_ended else ",") + text[last:place] + told + text[place:]


def _fill(text: str, root: JsonNode, container: JsonNode, key: str | None, value: Value) -> str:
    """Put the first value into an empty object or array."""
    inside = text[container.start : container.end]
    is_tall = container is root or "\n" in text[root.start : root.end]
    place = _after_comments(text, container.start + 1)
    indent = _indent(text, root, container)
    told = _told(text, root, key, value, indent if is_tall else None)
    if is_tall:
        told = _line_end(text) + indent + told
        if "\n" not in inside:
            told += _line_end(text) + _line_indent(text, container.start)
    return text[:place] + told + text[place:]


def cut(text: str, container: JsonNode, member: Member) -> str:
    """Return the text without something in an object or array: what `put` has put in is gone without a trace."""
    start = member.start
    if found := _LINE_START.search(text, 0, start):
        start = found.start()
    elif text[start - 1] == " ":
        start -= 1
    comma = after_trivia(text, member.end)
    if text[comma] == ",":
        return text[:start] + text[member.end : comma] + text[comma + 1 :]
    place = container.members.index(member)
    if place == 0:
        return text[:start] + text[member.end :]
    comma = after_trivia(text, container.members[place - 1].end)
    return text[:comma] + text[comma + 1 : max(start, comma + 1)] + text[member.end :]


def is_bare(text: str, container: JsonNode) -> bool:
    """Tell whether nothing is in an object or array, not even a comment."""
    return not text[container.start + 1 : container.end - 1].strip()


def is_bare_object(text: str) -> bool:
    """Tell whether a text is an empty object and nothing else."""
    return "".join(text.split()) == "{}"


def new_text(value: Mapping[str, Any]) -> str:
    """Return the text of a file of its own."""
    return json.dumps(value, indent=len(_UNIT), ensure_ascii=False) + "\n"


def _told(text: str, root: JsonNode, key: str | None, value: Value, indent: str | None) -> str:
    """Return a member as text, on one line where there is no indent."""
    name = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    if indent is None:
        return name + json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text, root)).split("\n")
    return name + (_line_end(text) + indent).join(lines)


def _after_comments(text: str, place: int) -> int:
    found = _BESIDE.match(text, place)
    return found.end() if found else place


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent(text: str, root: JsonNode, container: JsonNode) -> str:
    """Return how far what is in an object or array stands from the edge."""
    if container.members and (found := _LINE_START.search(text, 0, container.members[0].start)):
        return found[0].lstrip("\r\n")
    return _line_indent(text, container.start) + _unit(text, root)


def _line_indent(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str, root: JsonNode) -> str:
    """Return one step of indentation, as the file has it."""
    found = _LINE_START.search(text, 0, root.members[0].start) if root.members else None
    return (found[0].lstrip("\r\n") if found else "") or _UNIT

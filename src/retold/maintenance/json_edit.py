"""Edits of JSON with comments that leave all other bytes unchanged: a parser of spans, list items and hooks."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from retold.agents.protocol import HookPlan, SettingsListItem
from retold.reading.disk import COMMENT

DEEPEST = 100
TRIVIA = re.compile(rf"(?:[ \t\r\n]+|{COMMENT})*", re.DOTALL)
"""White space and comments between two tokens."""
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_PLAIN = re.compile(r"(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.])", re.ASCII)
_CLOSING = {"{": "}", "[": "]"}


class MalformedSettings(Exception):  # noqa: N818 - it describes the text
    """The text is not JSON (with comments and trailing commas) or not of the expected structure."""


class JsonNode(msgspec.Struct, frozen=True):
    """A value and its position in the text."""

    start: int
    end: int
    kind: Literal["object", "array", "string", "plain"]
    members: tuple["Member", ...] = ()

    def member(self, key: str) -> "Member | None":
        """Return the member with this key; of several the last, as in other parsers."""
        return next((one for one in reversed(self.members) if one.key == key), None)


class Member(msgspec.Struct, frozen=True):
    """A member of an object, with its key, or an element of an array, without one."""

    start: int
    value: JsonNode
    key: str | None = None

    @property
    def end(self) -> int:
        """The position after the value."""
        return self.value.end


def parse_json(text: str) -> JsonNode:
    """Return the root value of a text; raise MalformedSettings."""
    root = _parse_value(text, skip_trivia(text, 1 if text.startswith("\ufeff") else 0), 0)
    end = skip_trivia(text, root.end)
    if end < len(text):
        raise _syntax_error(text, end)
    return root


def skip_trivia(text: str, position: int) -> int:
    """Return the position of the next token."""
    found = TRIVIA.match(text, position)
    return found.end() if found else position


def string_value(text: str, node: JsonNode) -> str:
    """Return the value of a string node."""
    value: str = json.loads(text[node.start : node.end])
    return value


def _parse_value(text: str, position: int, depth: int) -> JsonNode:
    if depth > DEEPEST:
        raise MalformedSettings(f"nested deeper than {DEEPEST}")
    if text[position : position + 1] in _CLOSING:
        return _parse_container(text, position, depth)
    if found := _STRING.match(text, position):
        return JsonNode(position, found.end(), "string")
    if found := _PLAIN.match(text, position):
        return JsonNode(position, found.end(), "plain")
    raise _syntax_error(text, position)


def _parse_container(text: str, start: int, depth: int) -> JsonNode:
    is_object, closing = text[start] == "{", _CLOSING[text[start]]
    members: list[Member] = []
    position = skip_trivia(text, start + 1)
    while text[position : position + 1] != closing:
        member = (
            _parse_member(text, position, depth)
            if is_object
            else Member(position, _parse_value(text, position, depth + 1))
        )
        members.append(member)
        position = skip_trivia(text, member.end)
        if text[position : position + 1] == ",":
            position = skip_trivia(text, position + 1)
        elif text[position : position + 1] != closing:
            raise _syntax_error(text, position)
    return JsonNode(start, position + 1, "object" if is_object else "array", tuple(members))


def _parse_member(text: str, start: int, depth: int) -> Member:
    key = _STRING.match(text, start)
    colon = skip_trivia(text, key.end()) if key else start
    if key is None or text[colon : colon + 1] != ":":
        raise _syntax_error(text, colon)
    return Member(start, _parse_value(text, skip_trivia(text, colon + 1), depth + 1), json.loads(key[0]))


def _syntax_error(text: str, position: int) -> MalformedSettings:
    if position >= len(text):
        return MalformedSettings("it ends too early")
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return MalformedSettings(f"line {line}, column {column}: unexpected {text[position]!r}")


_COMMENTS_ON_LINE = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?:[ \t]*//[^\r\n]*)?")
"""Comments behind a token, on its line."""
_LINE_START = re.compile(r"\r?\n[ \t]*\Z")
_UNIT = "  "

Value = Mapping[str, Any] | list[Any] | str


def insert_value(text: str, root: JsonNode, container: JsonNode, key: str | None, value: Value) -> str:
    """Return the text with a value added to an object or array, laid out like its neighbours."""
    return (_append if container.members else _fill)(text, root, container, key, value)


def _append(text: str, root: JsonNode, container: JsonNode, key: str | None, value: Value) -> str:
    is_tall = "\n" in text[container.start : container.end]
    last = container.members[-1].end
    comma = skip_trivia(text, last)
    is_ended = text[comma] == ","
    position = _after_comments(text, comma + 1 if is_ended else last)
    indent = _indent(text, root, container)
    before = _line_end(text) + indent if is_tall else " "
    member = before + _format_member(text, root, key, value, indent if is_tall else None)
    if is_ended:
        return text[:position] + member + "," + text[position:]
    return text[:last] + "," + text[last:position] + member + text[position:]


def _fill(text: str, root: JsonNode, container: JsonNode, key: str | None, value: Value) -> str:
    """Return the text with the first value in an empty object or array."""
    inside = text[container.start : container.end]
    is_tall = container is root or "\n" in text[root.start : root.end]
    position = _after_comments(text, container.start + 1)
    indent = _indent(text, root, container)
    member = _format_member(text, root, key, value, indent if is_tall else None)
    if is_tall:
        member = _line_end(text) + indent + member
        if "\n" not in inside:
            member += _line_end(text) + _line_indent(text, container.start)
    return text[:position] + member + text[position:]


def remove_member(text: str, container: JsonNode, member: Member) -> str:
    """Return the text without a member; exactly undoes `insert_value`."""
    start = member.start
    if found := _LINE_START.search(text, 0, start):
        start = found.start()
    elif text[start - 1] == " ":
        start -= 1
    comma = skip_trivia(text, member.end)
    if text[comma] == ",":
        return text[:start] + text[member.end : comma] + text[comma + 1 :]
    position = container.members.index(member)
    if position == 0:
        return text[:start] + text[member.end :]
    comma = skip_trivia(text, container.members[position - 1].end)
    return text[:comma] + text[comma + 1 : max(start, comma + 1)] + text[member.end :]


def is_bare(text: str, container: JsonNode) -> bool:
    """Return whether an object or array holds nothing, not even a comment."""
    return not text[container.start + 1 : container.end - 1].strip()


def is_bare_object(text: str) -> bool:
    """Return whether a text is an empty object and nothing else."""
    return "".join(text.split()) == "{}"


def format_settings(value: Mapping[str, Any]) -> str:
    """Return the text of a new settings file."""
    return json.dumps(value, indent=len(_UNIT), ensure_ascii=False) + "\n"


def _format_member(text: str, root: JsonNode, key: str | None, value: Value, indent: str | None) -> str:
    """Return a member as text, on one line if `indent` is None."""
    name = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    if indent is None:
        return name + json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text, root)).split("\n")
    return name + (_line_end(text) + indent).join(lines)


def _after_comments(text: str, position: int) -> int:
    found = _COMMENTS_ON_LINE.match(text, position)
    return found.end() if found else position


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent(text: str, root: JsonNode, container: JsonNode) -> str:
    """Return the indentation of the members of an object or array."""
    if container.members and (found := _LINE_START.search(text, 0, container.members[0].start)):
        return found[0].lstrip("\r\n")
    return _line_indent(text, container.start) + _unit(text, root)


def _line_indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str, root: JsonNode) -> str:
    """Return one step of indentation of this file."""
    found = _LINE_START.search(text, 0, root.members[0].start) if root.members else None
    return (found[0].lstrip("\r\n") if found else "") or _UNIT


def with_item(text: str | None, item: SettingsListItem) -> str:
    """Return settings with an item in its list, which is created if needed; raise MalformedSettings."""
    if text is None:
        return format_settings(_nest(item.keys, item.value))
    if has_item(text, item):
        return text
    root = container = _root(text)
    for position, key in enumerate(item.keys):
        found = container.member(key)
        if found is None:
            return insert_value(text, root, container, key, _nest(item.keys[position + 1 :], item.value))
        container = _require_kind(
            found.value, item.keys[: position + 1], is_list=position + 1 == len(item.keys)
        )
    return insert_value(text, root, container, None, item.value)


def without_item(text: str, item: SettingsListItem) -> str:
    """Return settings without an item, and without containers that are empty then; raise MalformedSettings."""
    while (found := _find_item(text, item)) is not None:
        path, member = found
        text = remove_member(text, path[-1].value, member)
        text = _without_empty(text, item.keys)
    return text


def has_item(text: str, item: SettingsListItem) -> bool:
    """Return whether an item is in its list; raise MalformedSettings."""
    return _find_item(text, item) is not None


def _nest(keys: Sequence[str], value: str) -> Any:
    nested: Any = [value]
    for key in reversed(keys):
        nested = {key: nested}
    return nested


def _root(text: str) -> JsonNode:
    root = parse_json(text)
    if root.kind != "object":
        raise MalformedSettings("it is no object")
    return root


def _require_kind(node: JsonNode, keys: Sequence[str], *, is_list: bool) -> JsonNode:
    if node.kind != ("array" if is_list else "object"):
        raise MalformedSettings(f'"{".".join(keys)}" in it is no {"list" if is_list else "object"}')
    return node


def _path(text: str, keys: Sequence[str]) -> list[Member] | None:
    """Return the root and the members that the keys lead to, from outside in; None if one is missing."""
    root = _root(text)
    path = [Member(root.start, root)]
    for position, key in enumerate(keys):
        found = path[-1].value.member(key)
        if found is None:
            return None
        _require_kind(found.value, keys[: position + 1], is_list=position + 1 == len(keys))
        path.append(found)
    return path


def _find_item(text: str, item: SettingsListItem) -> tuple[list[Member], Member] | None:
    path = _path(text, item.keys)
    for member in path[-1].value.members if path else ():
        if member.value.kind == "string" and string_value(text, member.value) == item.value:
            return path or [], member
    return None


def _without_empty(text: str, keys: Sequence[str]) -> str:
    """Return the settings without the container that the keys lead to, and those around it, if they are empty."""
    for depth in range(len(keys), 0, -1):
        node = above = _root(text)
        for key in keys[:depth]:
            found = node.member(key)
            if found is None:
                return text
            above, node = node, found.value
        if not is_bare(text, node):
            return text
        text = remove_member(text, above, next(one for one in above.members if one.value is node))
    return text


HOOK_WORDS = "keep --hook"
"""Words in every hook that any version of retold writes."""
HOOKS = "hooks"


def hook_settings(plan: HookPlan) -> dict[str, Any]:
    """Return settings that hold the planned hooks and nothing else."""
    return {HOOKS: {event: [plan.entry] for event in plan.events}}


def with_hook(text: str | None, plan: HookPlan) -> str:
    """Return settings with our hook at each planned event, once; raise MalformedSettings."""
    if text is None:
        return format_settings(hook_settings(plan))
    text = without_hook(text)
    for event in plan.events:
        text = _with_hook_entry(text, event, plan)
    return text


def _with_hook_entry(text: str, event: str, plan: HookPlan) -> str:
    root = _hooks_root(text)
    hooks = root.member(HOOKS)
    if hooks is None:
        return insert_value(text, root, root, HOOKS, {event: [plan.entry]})
    entries = hooks.value.member(event)
    if entries is None:
        return insert_value(text, root, hooks.value, event, [plan.entry])
    if entries.value.kind != "array":
        raise MalformedSettings(f'"{HOOKS}.{event}" in it is no list')
    return insert_value(text, root, entries.value, None, plan.entry)


def without_hook(text: str) -> str:
    """Return settings without our hooks, and otherwise unchanged; raise MalformedSettings."""
    while (found := next(_find_own(text, _hooks_root(text)), None)) is not None:
        path, member = found
        text = remove_member(text, path[-1].value, member)
        text = _without_empty(text, [str(one.key) for one in path[1:3]])
    return text


def events_with_hook(text: str) -> list[str]:
    """Return the events with our hook; raise MalformedSettings."""
    return [str(path[2].key) for path, _ in _find_own(text, _hooks_root(text))]


def has_planned_hooks(text: str, plan: HookPlan) -> bool:
    """Return whether our hooks in the settings are exactly the planned ones; raise MalformedSettings."""
    found = [
        (str(path[2].key), _member_value(text, member)) for path, member in _find_own(text, _hooks_root(text))
    ]
    return sorted(event for event, _ in found) == sorted(plan.events) and all(
        value == plan.entry for _, value in found
    )


def _member_value(text: str, member: Member) -> object:
    """Return the value of a member, or None if it has comments in it, which we do not write."""
    try:
        return json.loads(text[member.start : member.end])
    except ValueError:
        return None


def _hooks_root(text: str) -> JsonNode:
    root = _root(text)
    hooks = root.member(HOOKS)
    if hooks is not None and hooks.value.kind != "object":
        raise MalformedSettings(f'"{HOOKS}" in it is no object')
    return root


def _find_own(text: str, root: JsonNode) -> Iterator[tuple[list[Member], Member]]:
    """Yield the path to each of our hooks (the root, `hooks`, the event, and arrays in it), and the hook."""
    hooks = root.member(HOOKS)
    for event in hooks.value.members if hooks else ():
        yield from _find_in_array(text, [Member(root.start, root), *([hooks] if hooks else []), event])


def _find_in_array(text: str, path: list[Member]) -> Iterator[tuple[list[Member], Member]]:
    """Yield the elements of an array that are our hooks; of an element shared with others, only our part."""
    for element in path[-1].value.members if path[-1].value.kind == "array" else ():
        if not _has_hook_words(text, element.value):
            continue
        shared = next(_shared(text, element.value), None)
        if shared is None:
            yield path, element
        else:
            yield from _find_in_array(text, [*path, shared])


def _shared(text: str, node: JsonNode) -> Iterator[Member]:
    """Yield the arrays in a node with both our hooks and others."""
    for member in node.members:
        is_ours = [_has_hook_words(text, one.value) for one in member.value.members]
        if member.value.kind == "array" and any(is_ours) and not all(is_ours):
            yield member


def _has_hook_words(text: str, node: JsonNode) -> bool:
    if node.kind == "string":
        return HOOK_WORDS in string_value(text, node)
    return any(_has_hook_words(text, member.value) for member in node.members)

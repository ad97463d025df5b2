"""Where everything stands in JSON with comments: spans, so that a change leaves all other bytes as they are."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from retold.agents.protocol import HookPlan, ListItem
from retold.reading.disk import COMMENT

DEEPEST = 100
TRIVIA = re.compile(rf"(?:[ \t\r\n]+|{COMMENT})*", re.DOTALL)
"""What may stand between two tokens."""
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_PLAIN = re.compile(r"(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.])", re.ASCII)
_CLOSING = {"{": "}", "[": "]"}


class Broken(Exception):  # noqa: N818 - it says what the text is
    """The text is no JSON, comments and commas before a closing bracket allowed."""


class JsonNode(msgspec.Struct, frozen=True):
    """A value, and where it stands."""

    start: int
    end: int
    kind: Literal["object", "array", "string", "plain"]
    members: tuple["Member", ...] = ()

    def member(self, key: str) -> "Member | None":
        """Return what is named so; of several the last, as everybody reads it."""
        return next((one for one in reversed(self.members) if one.key == key), None)


class Member(msgspec.Struct, frozen=True):
    """Something in an object, with its key, or in an array, without one."""

    start: int
    value: JsonNode
    key: str | None = None

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.value.end


def scanned(text: str) -> JsonNode:
    """Return the value that a text is; raises Broken."""
    root = _value(text, after_trivia(text, 1 if text.startswith("\ufeff") else 0), 0)
    end = after_trivia(text, root.end)
    if end < len(text):
        raise _broken(text, end)
    return root


def after_trivia(text: str, place: int) -> int:
    """Return where the next token begins."""
    found = TRIVIA.match(text, place)
    return found.end() if found else place


def string_of(text: str, node: JsonNode) -> str:
    """Return what a string says."""
    said: str = json.loads(text[node.start : node.end])
    return said


def _value(text: str, place: int, depth: int) -> JsonNode:
    if depth > DEEPEST:
        raise Broken(f"nested deeper than {DEEPEST}")
    if text[place : place + 1] in _CLOSING:
        return _container(text, place, depth)
    if found := _STRING.match(text, place):
        return JsonNode(place, found.end(), "string")
    if found := _PLAIN.match(text, place):
        return JsonNode(place, found.end(), "plain")
    raise _broken(text, place)


def _container(text: str, start: int, depth: int) -> JsonNode:
    is_object, closing = text[start] == "{", _CLOSING[text[start]]
    members: list[Member] = []
    place = after_trivia(text, start + 1)
    while text[place : place + 1] != closing:
        member = _member(text, place, depth) if is_object else Member(place, _value(text, place, depth + 1))
        members.append(member)
        place = after_trivia(text, member.end)
        if text[place : place + 1] == ",":
            place = after_trivia(text, place + 1)
        elif text[place : place + 1] != closing:
            raise _broken(text, place)
    return JsonNode(start, place + 1, "object" if is_object else "array", tuple(members))


def _member(text: str, start: int, depth: int) -> Member:
    key = _STRING.match(text, start)
    colon = after_trivia(text, key.end()) if key else start
    if key is None or text[colon : colon + 1] != ":":
        raise _broken(text, colon)
    return Member(start, _value(text, after_trivia(text, colon + 1), depth + 1), json.loads(key[0]))


def _broken(text: str, place: int) -> Broken:
    if place >= len(text):
        return Broken("it ends too early")
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    return Broken(f"line {line}, column {column}: unexpected {text[place]!r}")


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


def with_item(text: str | None, item: ListItem) -> str:
    """Return settings that have the text in the list, made where there is none; raises Broken."""
    if text is None:
        return new_text(_nested(item.keys, item.value))
    if has_item(text, item):
        return text
    root = container = _root(text)
    for place, key in enumerate(item.keys):
        found = container.member(key)
        if found is None:
            return put(text, root, container, key, _nested(item.keys[place + 1 :], item.value))
        container = _expected(found.value, item.keys[: place + 1], is_list=place + 1 == len(item.keys))
    return put(text, root, container, None, item.value)


def without_item(text: str, item: ListItem) -> str:
    """Return settings without the text, and without what is empty then; raises Broken."""
    while (found := _found(text, item)) is not None:
        path, member = found
        text = cut(text, path[-1].value, member)
        text = _without_empty(text, item.keys)
    return text


def has_item(text: str, item: ListItem) -> bool:
    """Tell whether the text is in the list; raises Broken."""
    return _found(text, item) is not None


def _nested(keys: Sequence[str], value: str) -> Any:
    told: Any = [value]
    for key in reversed(keys):
        told = {key: told}
    return told


def _root(text: str) -> JsonNode:
    root = scanned(text)
    if root.kind != "object":
        raise Broken("it is no object")
    return root


def _expected(node: JsonNode, keys: Sequence[str], *, is_list: bool) -> JsonNode:
    if node.kind != ("array" if is_list else "object"):
        raise Broken(f'"{".".join(keys)}" in it is no {"list" if is_list else "object"}')
    return node


def _path(text: str, keys: Sequence[str]) -> list[Member] | None:
    """Return the root and what the keys lead to, one in the other; None where something is missing."""
    root = _root(text)
    path = [Member(root.start, root)]
    for place, key in enumerate(keys):
        found = path[-1].value.member(key)
        if found is None:
            return None
        _expected(found.value, keys[: place + 1], is_list=place + 1 == len(keys))
        path.append(found)
    return path


def _found(text: str, item: ListItem) -> tuple[list[Member], Member] | None:
    path = _path(text, item.keys)
    for member in path[-1].value.members if path else ():
        if member.value.kind == "string" and string_of(text, member.value) == item.value:
            return path or [], member
    return None


def _without_empty(text: str, keys: Sequence[str]) -> str:
    """Return the settings without the list, and what it is in, if nothing is left in them."""
    for depth in range(len(keys), 0, -1):
        node = above = _root(text)
        for key in keys[:depth]:
            found = node.member(key)
            if found is None:
                return text
            above, node = node, found.value
        if not is_bare(text, node):
            return text
        text = cut(text, above, next(one for one in above.members if one.value is node))
    return text


HOOK_WORDS = "keep --hook"
"""What every call of ours has in it, whichever retold wrote it down."""
HOOKS = "hooks"


def hooks_of(plan: HookPlan) -> dict[str, Any]:
    """Return settings that say nothing but when to call retold."""
    return {HOOKS: {event: [plan.entry] for event in plan.events}}


def with_hook(text: str | None, plan: HookPlan) -> str:
    """Return settings that call retold, once for each event; raises Broken where they are not what they should be."""
    if text is None:
        return new_text(hooks_of(plan))
    text = without_hook(text)
    for event in plan.events:
        text = _with_entry(text, event, plan)
    return text


def _with_entry(text: str, event: str, plan: HookPlan) -> str:
    root = _hooks_root(text)
    hooks = root.member(HOOKS)
    if hooks is None:
        return put(text, root, root, HOOKS, {event: [plan.entry]})
    entries = hooks.value.member(event)
    if entries is None:
        return put(text, root, hooks.value, event, [plan.entry])
    if entries.value.kind != "array":
        raise Broken(f'"{HOOKS}.{event}" in it is no list')
    return put(text, root, entries.value, None, plan.entry)


def without_hook(text: str) -> str:
    """Return settings that do not call retold, and all else as it stands; raises Broken."""
    while (found := next(_ours(text, _hooks_root(text)), None)) is not None:
        path, member = found
        text = cut(text, path[-1].value, member)
        text = _without_empty_hooks(text, [one.key for one in path])
    return text


def _without_empty_hooks(text: str, keys: list[str | None]) -> str:
    """Return the settings without `hooks`, and the event in it, if nothing is left in them."""
    for depth in (2, 1):
        node, above = _hooks_root(text), None
        for key in keys[1 : depth + 1]:
            above, member = node, node.member(str(key))
            if member is None:
                return text
            node = member.value
        if above is not None and is_bare(text, node):
            text = cut(text, above, next(one for one in above.members if one.value is node))
    return text


def calls(text: str) -> list[str]:
    """Return the events that call retold; raises Broken."""
    return [str(path[2].key) for path, _ in _ours(text, _hooks_root(text))]


def is_called(text: str, plan: HookPlan) -> bool:
    """Tell whether the settings have what is planned, wherever it stands among others'; raises Broken."""
    found = [
        (str(path[2].key), _member_value(text, member)) for path, member in _ours(text, _hooks_root(text))
    ]
    return sorted(event for event, _ in found) == sorted(plan.events) and all(
        value == plan.entry for _, value in found
    )


def _member_value(text: str, member: Member) -> object:
    """Return what something says; what has comments in it is not as we wrote it."""
    try:
        return json.loads(text[member.start : member.end])
    except ValueError:
        return None


def _hooks_root(text: str) -> JsonNode:
    root = scanned(text)
    if root.kind != "object":
        raise Broken("it is no object")
    hooks = root.member(HOOKS)
    if hooks is not None and hooks.value.kind != "object":
        raise Broken(f'"{HOOKS}" in it is no object')
    return root


def _ours(text: str, root: JsonNode) -> Iterator[tuple[list[Member], Member]]:
    """Yield what is to be removed, with all that it is in: the root, `hooks`, the event, and arrays within."""
    hooks = root.member(HOOKS)
    for event in hooks.value.members if hooks else ():
        yield from _marked(text, [Member(root.start, root), *([hooks] if hooks else []), event])


def _marked(text: str, path: list[Member]) -> Iterator[tuple[list[Member], Member]]:
    """Yield the elements of an array that call retold; of one that calls other things too, only its part."""
    for element in path[-1].value.members if path[-1].value.kind == "array" else ():
        if not _is_marked(text, element.value):
            continue
        shared = next(_shared(text, element.value), None)
        if shared is None:
            yield path, element
        else:
            yield from _marked(text, [*path, shared])


def _shared(text: str, node: JsonNode) -> Iterator[Member]:
    """Yield an array within that holds ours and others'."""
    for member in node.members:
        marked = [_is_marked(text, one.value) for one in member.value.members]
        if member.value.kind == "array" and any(marked) and not all(marked):
            yield member


def _is_marked(text: str, node: JsonNode) -> bool:
    if node.kind == "string":
        return HOOK_WORDS in string_of(text, node)
    return any(_is_marked(text, member.value) for member in node.members)

"""A text put into a list in JSON settings, and taken out again."""

from collections.abc import Sequence
from typing import Any

from retold.agents.protocol import ListItem
from retold.care.jsonc import Broken, JsonNode, Member, scanned, string_of
from retold.care.splice import cut, is_bare, new_text, put


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

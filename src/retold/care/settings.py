"""The settings of an agent with the call of retold in them, and without."""

import json
from collections.abc import Iterator
from typing import Any

from retold.agents.protocol import HookPlan
from retold.care.jsonc import Broken, JsonNode, Member, scanned, string_of
from retold.care.splice import cut, is_bare, new_text, put

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

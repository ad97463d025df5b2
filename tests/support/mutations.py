"""Session files with one or a few values replaced by values of other JSON types."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from support import cases

DEEP: Any = "x"
for _ in range(60):
    DEEP = {"a": [DEEP]}
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**40, -(10**20), 1e308, "", "x", "\ud83d", "a\ud83d\x00b", "1", "/", "-", "null",
    "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00Z", "2026-13-45T99:99:99Z", [], {}, [[]], [None], [{}], [[], {}],
    {"type": []}, {"type": {}}, {"text": None}, {"text": ["x"]}, {"a": {"b": None}}, [1, "two", None, {"three": 3}], DEEP,
)  # fmt: skip
"""Values that take the place of others."""
_IDS = (
    "uuid",
    "parentUuid",
    "leafUuid",
    "id",
    "sessionId",
    "parent_id",
    "forked_from_id",
    "$rewindTo",
    "agentId",
)
"""Keys that name records: their values are exchanged, so that parents form circles."""
Place = tuple[Any, Any]
"""A dict or list, and a key or index in it."""


def case_files() -> list[tuple[str, Path, bytes]]:
    """Return the case, path and content of every input file of the cases."""
    return [
        (case, file, (cases.FOLDER / case / file).read_bytes())
        for case in cases.NAMES
        for file in cases.input_files(case)
    ]


def mutated(data: bytes, chance: Random) -> bytes:
    """Return a file in which some values are replaced; sometimes its end is missing."""
    lines = data.split(b"\n") if data.count(b"\n{") else [data]
    decoded = [_decoded(line) for line in lines]
    places = [place for tree in decoded if tree is not None for place in _places(tree)]
    if not places:
        return data
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        holder, key = chance.choice(places)
        _replace(holder, key, places, chance)
    told = [line if tree is None else _encoded(tree[0]) for line, tree in zip(lines, decoded, strict=True)]
    if chance.random() < 0.1:
        chance.shuffle(told)
    whole = b"\n".join(told)
    return whole[: chance.randrange(len(whole))] if chance.random() < 0.2 else whole


def _decoded(line: bytes) -> list[Any] | None:
    """Return a JSON value in a list of its own, or None for a line that is not JSON."""
    try:
        return [json.loads(line)]
    except (ValueError, RecursionError):
        return None


def _encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _places(tree: list[Any]) -> Iterator[Place]:
    """Yield every place in a tree, its root included."""
    pending: list[Any] = [tree]
    while pending:
        holder = pending.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            yield holder, key
            if isinstance(holder[key], dict | list):
                pending.append(holder[key])


def _replace(holder: Any, key: Any, places: list[Place], chance: Random) -> None:
    """Replace one value; the holder may have been replaced before, and is then of no effect."""
    way = chance.random()
    if isinstance(holder, dict) and way < 0.15:
        holder.pop(key, None)
    elif key in _IDS and way < 0.6:
        named = [
            other[name]
            for other, name in places
            if name in _IDS and isinstance(other, dict) and name in other
        ]
        holder[key] = chance.choice(named) if named else None
    elif isinstance(holder, dict) or key < len(holder):
        holder[key] = chance.choice(VALUES)

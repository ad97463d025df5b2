"""Session files with one or a few values replaced: by other JSON types, deep nesting, huge numbers, ids of others."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from retold.export.formats.registry import FORMATS, ExportOptions
from support import cases
from support.full_session import everything

DEEP: Any = "x"
for _ in range(60):
    DEEP = {"a": [DEEP]}
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**40, -(10**20), 1e308, "", "x", "\ud83d", "a\ud83d\x00b", "1", "/", "-", "null",
    "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00Z", "2026-13-45T99:99:99Z", [], {}, [[]], [None], [{}], [[], {}],
    {"type": []}, {"type": {}}, {"text": None}, {"text": ["x"]}, {"a": {"b": None}}, [1, "two", None, {"three": 3}], DEEP,
)  # fmt: skip
"""Values that take the place of others."""
RAW: dict[str, bytes] = {
    **{f"@lists {depth}@": b"[" * depth + b"]" * depth for depth in (300, 900, 990, 5_000)},
    **{f"@objects {depth}@": b'{"a":' * depth + b"1" + b"}" * depth for depth in (300, 480, 900, 5_000)},
    "@digits@": b"9" * 5_000, "@small@": b"-" + b"9" * 400, "@float@": b"1e400", "@tiny@": b"1e-400",
    "@fraction@": b"0." + b"1" * 5_000, "@zero@": b"-0", "@nan@": b"NaN", "@infinite@": b"-Infinity",
    "@controls@": b'"\x00\x1b[2J\x7f"', "@bytes@": b'"\xff\xfe\xed\xa0\xbd"', "@twice@": b'{"a":1,"a":{"a":[]}}',
}  # fmt: skip
"""Values that `json` does not write, each with the text that stands in for it until the file is written."""
_RAW = re.compile(rb'"(@[a-z0-9 ]{1,20}@)"')
_IDS = re.compile(r"(?:\w*(?:[iI]d|[uU]uid|Use)|parent|key|\$rewindTo)(?:_id|ID)?")
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


def exported_files() -> list[tuple[str, Path, bytes]]:
    """Return the name, path and content of the files that retold itself writes and reads again."""
    choice = ExportOptions(thoughts=True, notices=True)
    return [
        (
            f"export as {form}",
            Path(f"told{FORMATS[form].suffix}"),
            b"".join(FORMATS[form].encode([everything()], choice)),
        )
        for form in ("json", "jsonl", "md", "share-md", "share-json")
    ]


def mutated(files: Sequence[bytes], chance: Random) -> list[bytes]:
    """Return files in which some values are replaced, also by ids from one another; sometimes an end is missing."""
    trees = [_Tree(data) for data in files]
    places = [place for tree in trees for place in tree.places()]
    for _ in range(chance.choice((1, 1, 1, 2, 5)) * len(files) if places else 0):
        holder, key = chance.choice(places)
        _replace(holder, key, places, chance)
    return [tree.written(chance) for tree in trees]


_MARK = re.compile(rb"(?<=<!-- retold ).*(?= -->)")


class _Tree:
    """The JSON values of a file: the whole, its lines, or the marks in a page."""

    def __init__(self, data: bytes) -> None:
        if data.startswith(b"<!-- retold "):
            spans = [found.span() for found in _MARK.finditer(data)]
        elif data.count(b"\n{"):
            spans = [found.span() for found in re.finditer(rb"[^\n]+", data)]
        else:
            spans = [(0, len(data))]
        self._pieces: list[bytes | list[Any]] = []
        end = 0
        for start, stop in spans:
            self._pieces += [data[end:start], _decoded(data[start:stop]) or data[start:stop]]
            end = stop
        self._pieces.append(data[end:])

    def places(self) -> Iterator[Place]:
        """Yield every place in the values."""
        for piece in self._pieces:
            if isinstance(piece, list):
                yield from _places(piece)

    def written(self, chance: Random) -> bytes:
        """Return the file; sometimes its lines change places, and sometimes its end is missing."""
        whole = b"".join(_encoded(piece[0]) if isinstance(piece, list) else piece for piece in self._pieces)
        if chance.random() < 0.1:
            lines = whole.split(b"\n")
            chance.shuffle(lines)
            whole = b"\n".join(lines)
        is_cut = whole and chance.random() < 0.2
        return whole[: chance.randrange(len(whole))] if is_cut else whole


def _decoded(line: bytes) -> list[Any] | None:
    """Return a JSON value in a list of its own, or None for a line that is not JSON."""
    try:
        return [json.loads(line)]
    except (ValueError, RecursionError):
        return None


def _encoded(value: Any) -> bytes:
    text = json.dumps(value, separators=(",", ":")).encode("ascii")
    return _RAW.sub(lambda found: RAW.get(found[1].decode(), found[0]), text) if b'"@' in text else text


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
    elif _is_id(key) and way < 0.6:
        named = [
            other[name]
            for other, name in places
            if _is_id(name) and isinstance(other, dict) and name in other
        ]
        holder[key] = chance.choice(named) if named else None
    elif isinstance(holder, dict) or key < len(holder):
        holder[key] = chance.choice(tuple(RAW)) if way > 0.85 else chance.choice(VALUES)


def _is_id(key: Any) -> bool:
    return isinstance(key, str) and _IDS.fullmatch(key) is not None

"""All texts of a session, with their places: each is shown to somebody who may put another in its place."""

from collections import Counter
from collections.abc import Callable, Container
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

Visitor = Callable[[str, "TextWalk"], str]

_OURS = frozenset(
    ("agent", "canonical", "category", "code", "evidence", "fate", "format", "kind", "role", "severity", "state", "status", "view")
)  # fmt: skip
"""Fields that hold words of ours."""
_LINKS = frozenset(("call", "child", "children", "id", "key", "native_id", "parent", "request", "response"))
"""Fields by which things are found again."""
_DATA = frozenset(("data", "signature"))
"""Fields that hold base64: whoever decodes it should find none rather than a mark."""
_NAMES, _VALUES = ("name", "key", "Name", "Key", "variable"), ("value", "Value")
_DEEPEST = 100
TOO_DEEP = "[left out: nested too deep to be checked]"
NO_TEXT = "[left out: cannot be checked]"


class TextWalk:
    """A walk through one session; while it goes, it tells where it is."""

    def __init__(self, visitor: Visitor) -> None:
        self._visitor = visitor
        self._path: list[str] = []
        self.name: str | None = None
        """The name to which the text is assigned, if it is."""
        self.is_link = False
        self.is_data = False
        """Whether the text is data in base64 or nothing."""

    @property
    def field(self) -> str:
        """The field of the text that is being looked at, from its message on."""
        return ".".join(self._path)

    def struct(self, value: msgspec.Struct) -> Any:
        """Return a value of the model with its texts replaced; the same one, where nothing was."""
        changes = {}
        for name in value.__struct_fields__:
            held = getattr(value, name)
            if held is None or name in _OURS:
                continue
            self._path.append(name)
            self.is_link, self.is_data = name in _LINKS, name in _DATA
            told = self.value(held)
            is_left_out, self.is_link, self.is_data = self.is_data and told is not held, False, False
            self._path.pop()
            if told is not held:
                changes[name] = None if is_left_out else told
        return msgspec.structs.replace(value, **changes) if changes else value

    def value(self, value: Any, name: str | None = None, depth: int = 0) -> Any:
        """Return any value with its texts replaced; what is no value of JSON or of the model is left out."""
        if depth > _DEEPEST:
            return TOO_DEEP
        if isinstance(value, str):
            self.name = name
            return self._visitor(value, self)
        if isinstance(value, msgspec.Struct):
            return self.struct(value)
        if isinstance(value, dict):
            return self._mapping(value, depth + 1)
        if isinstance(value, list | tuple):
            return self._sequence(value, depth + 1)
        if type(value) is int and name:
            return self._number(value, name)
        if value is None or isinstance(value, bool | int | float | datetime | Decimal):
            return value
        return NO_TEXT

    def _number(self, value: int, name: str) -> Any:
        """Return a number, or what stands in for it: a password may consist of digits."""
        try:
            text = str(value)
        except ValueError:  # more digits than Python cares to write
            return NO_TEXT
        self.name = name
        told = self._visitor(text, self)
        return value if told is text else told

    def _mapping(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        """Return an object with keys and values replaced; no two keys become one."""
        told: dict[Any, Any] = {}
        numbers: Counter[Any] = Counter()
        is_same = True
        speaking = next((value[key] for key in _NAMES if type(value.get(key)) is str), None)
        for key, held in value.items():
            self._path.append(str(key) if len(self._path) < _DEEPEST else "…")
            new_key = self.value(key, None, depth)
            new = self.value(held, speaking if speaking and key in _VALUES else str(key), depth)
            self._path.pop()
            new_key = _free(new_key, told, numbers) if new_key in told else new_key
            is_same = is_same and new_key is key and new is held
            told[new_key] = new
        return value if is_same else told

    def _sequence(self, value: list[Any] | tuple[Any, ...], depth: int) -> Any:
        """Return a list with its items replaced; what follows a flag is its value."""
        told, flag, is_same = [], None, True
        for item in value:
            new = self.value(item, flag, depth)
            flag = item if type(item) is str and item.startswith("-") and "=" not in item else None
            is_same = is_same and new is item
            told.append(new)
        return value if is_same else type(value)(told)


def _free(key: str, taken: Container[str], numbers: Counter[str]) -> str:
    """Return a key that is free; `numbers` says how often each was asked for, so that none is tried again."""
    free = key
    while free in taken:
        numbers[key] += 1
        free = f"{key}'" if numbers[key] == 1 else f"{key}'{numbers[key]}"
    return free

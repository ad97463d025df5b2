"""Where everything stands in JSON with comments: spans, so that a change leaves all other bytes as they are."""

import json
import re
from typing import Literal

import msgspec

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

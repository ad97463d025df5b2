"""Redactor: removes secrets from the sessions of an export, with one placeholder for each secret in all of them."""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Any, Self, TypeVar

import msgspec

from retold.model.session import Session
from retold.redaction.assignments import classify_field
from retold.redaction.detector import find_secrets
from retold.redaction.placeholders import Placeholders, PlaceholderSpan
from retold.redaction.rules import FREE, Budget, OverBudget
from retold.redaction.secrets import Secret, merge_overlaps

Visitor = Callable[[str, "TextWalk"], str]

_FIXED = frozenset(
    ("agent", "canonical", "category", "code", "evidence", "fate", "format", "kind", "role", "severity", "state", "status", "view")
)  # fmt: skip
"""Fields of the model with fixed values."""
_LINKS = frozenset(("call", "child", "children", "id", "key", "native_id", "parent", "request", "response"))
"""Fields that link sessions, messages and calls."""
_DATA = frozenset(("data", "signature"))
"""Fields that hold base64. They become None, because a placeholder could not be decoded."""
_TITLE = "title"
_NAMES, _VALUES = ("name", "key", "Name", "Key", "variable"), ("value", "Value")
_DEEPEST = 100
TOO_DEEP = "[left out: nested too deep to be checked]"
NO_TEXT = "[left out: cannot be checked]"


class TextWalk:
    """Walks through the texts of one session and replaces each by what the visitor returns."""

    def __init__(self, visitor: Visitor, *, is_line: bool = False) -> None:
        """Replace texts; with `is_line`, all of them are treated as titles."""
        self._visitor, self._is_line = visitor, is_line
        self._path: list[str] = []
        self.name: str | None = None
        """The name to which the current text is assigned, if any."""
        self.is_line = is_line
        """Whether the current text joins several lines into one and may be cut, as a title is."""
        self.is_link = False
        self.is_data = False
        """Whether the current text is data in base64."""

    @property
    def field(self) -> str:
        """The path of the current text within its message."""
        return ".".join(self._path)

    def struct(self, value: msgspec.Struct) -> Any:
        """Return a value of the model with its texts replaced; the same object if nothing changed."""
        changes = {}
        for name in value.__struct_fields__:
            item = getattr(value, name)
            if item is None or name in _FIXED:
                continue
            self._path.append(name)
            self.is_link, self.is_data = name in _LINKS, name in _DATA
            self.is_line = self._is_line or name == _TITLE
            replaced = self.value(item)
            is_left_out, self.is_link, self.is_data = self.is_data and replaced is not item, False, False
            self.is_line = self._is_line
            self._path.pop()
            if replaced is not item:
                changes[name] = None if is_left_out else replaced
        return msgspec.structs.replace(value, **changes) if changes else value

    def value(self, value: Any, name: str | None = None, depth: int = 0) -> Any:
        """Return any value with its texts replaced; a value that is neither JSON nor of the model is left out."""
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
        """Return a number or its placeholder: a password may consist of digits."""
        try:
            text = str(value)
        except ValueError:  # more digits than Python cares to write
            return NO_TEXT
        self.name = name
        replaced = self._visitor(text, self)
        return value if replaced is text else replaced

    def _mapping(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        """Return an object with keys and values replaced; all keys stay different."""
        replaced: dict[Any, Any] = {}
        numbers: Counter[Any] = Counter()
        is_same = True
        announced = next((value[key] for key in _NAMES if type(value.get(key)) is str), None)
        for key, item in value.items():
            self._path.append(str(key) if len(self._path) < _DEEPEST else "…")
            new_key = self.value(key, None, depth)
            new = self.value(item, announced if announced and key in _VALUES else str(key), depth)
            self._path.pop()
            new_key = _free_key(new_key, replaced, numbers) if new_key in replaced else new_key
            is_same = is_same and new_key is key and new is item
            replaced[new_key] = new
        return value if is_same else replaced

    def _sequence(self, value: list[Any] | tuple[Any, ...], depth: int) -> Any:
        """Return a list with its items replaced; an item after a flag is the value of that flag."""
        replaced, flag, is_same = [], None, True
        for item in value:
            new = self.value(item, flag, depth)
            flag = item if type(item) is str and item.startswith("-") and "=" not in item else None
            is_same = is_same and new is item
            replaced.append(new)
        return value if is_same else type(value)(replaced)


def _free_key(key: str, taken: Container[str], numbers: Counter[str]) -> str:
    """Return a key that is not taken; `numbers` counts the requests for each key, so that no candidate is tried twice."""
    free = key
    while free in taken:
        numbers[key] += 1
        free = f"{key}'" if numbers[key] == 1 else f"{key}'{numbers[key]}"
    return free


class RemovalPlace(msgspec.Struct, frozen=True):
    """The place of a removal."""

    session: str | None
    """The key of the session; None for a text outside of sessions."""
    entry: str | None
    """The id of the message or event, else its index in the timeline; None for fields of the session itself."""
    field: str
    """The path of the field within the entry."""


class Removal(msgspec.Struct, frozen=True):
    """A secret that was removed, with its number of occurrences in one place."""

    kind: str
    placeholder: str
    """The text that replaces it."""
    count: int
    place: RemovalPlace


T = TypeVar("T", bound=msgspec.Struct)
LONGEST = 50_000_000
TOO_LONG = "[left out: too long to be checked]"
TOO_COSTLY = "[left out: takes too many steps to be checked]"
_ROUNDS = 4


class Redactor:
    """Removes secrets from sessions and texts; remembers them, so that each has one placeholder everywhere."""

    def __init__(
        self,
        *,
        keep_attachments: bool = False,
        home: str | None = None,
        longest: int = LONGEST,
        free_steps: int = FREE,
    ) -> None:
        """Remove data that cannot be checked as well, and pictures unless `keep_attachments`.

        `home` is the user's home folder. Texts of more than `longest` characters are left out unchecked. So are texts
        that take too many steps: each may take `free_steps`, and some more for each character.
        """
        self.keeps_images, self._longest, self._free_steps = keep_attachments, longest, free_steps
        self._known = Placeholders()
        if home is not None:
            self._known.learn_home(home)
        self._removals: Counter[tuple[str, str, RemovalPlace]] = Counter()
        self._found: dict[str, list[Secret] | None] = {}
        self._clean: set[tuple[int, int]] = set()
        """Hash and length of texts without secrets: texts that are learned from are looked at again."""
        self._session: str | None = None
        self._entry: str | None = None

    def learn(self, value: msgspec.Struct) -> None:
        """Remember the secrets of a session, so that sessions redacted before it lose them, too."""
        TextWalk(self._learn_text).struct(value)
        self._found.clear()

    def copy(self) -> Self:
        """Return an independent redactor that knows the same secrets and has removed nothing."""
        other = type(self)(
            keep_attachments=self.keeps_images, longest=self._longest, free_steps=self._free_steps
        )
        other._known, other._clean = self._known.copy(), self._clean  # noqa: SLF001 - its own kind
        return other

    def known_values(self) -> Iterator[str]:
        """Yield everything known, secrets included, in a fixed order."""
        return self._known.known_values()

    def redact(self, session: Session, *, is_learned: bool = False) -> Session:
        """Return a session without its secrets and without those of earlier sessions."""
        if not is_learned:
            TextWalk(self._learn_text).struct(session)
        self._session, self._entry = self._redact_own(session.key), None
        walk = TextWalk(self._replace)
        bare = walk.struct(msgspec.structs.replace(session, timeline=()))
        timeline = []
        for place, entry in enumerate(session.timeline):
            self._entry = self._redact_own(entry.id) if entry.id else str(place)
            timeline.append(walk.struct(entry))
        self._session = self._entry = None
        self._found.clear()
        redacted: Session = msgspec.structs.replace(bare, timeline=tuple(timeline))
        return redacted

    def redact_text(self, text: str, *, is_line: bool = False) -> str:
        """Return a text without its secrets and without those of earlier sessions; `is_line` as in `redact_value`."""
        walk = TextWalk(self._replace, is_line=is_line)
        self._learn_text(text, walk)
        redacted = self._replace(text, walk)
        self._found.clear()
        return redacted

    def redact_value(self, value: T, *, is_line: bool = False) -> T:
        """Return a struct of texts without its secrets and without those of earlier sessions.

        With `is_line`, each of its texts joins several lines into one or may be cut, as a title does.
        """
        TextWalk(self._learn_text).struct(value)
        redacted: T = TextWalk(self._replace, is_line=is_line).struct(value)
        self._found.clear()
        return redacted

    def report(self) -> list[Removal]:
        """Return the removals so far, in the order in which they happened."""
        return [
            Removal(kind, placeholder, count, place)
            for (kind, placeholder, place), count in self._removals.items()
        ]

    def _learn_text(self, text: str, walk: TextWalk) -> str:
        """Remember the secrets of a text."""
        kind = classify_field(walk.name, text) if walk.name else None
        if kind:
            self._known.learn(kind, text)
        elif len(text) <= self._longest:
            with suppress(OverBudget):
                for finding in self._findings(text):
                    self._known.span(text, finding)
        return text

    def _replace(self, text: str, walk: TextWalk) -> str:
        """Return a text without secrets, and note the removals."""
        kind = classify_field(walk.name, text) if walk.name else None
        if kind:
            placeholder = self._known.learn(kind, text)
            self._note(PlaceholderSpan(0, len(text), placeholder, kind), walk)
            return placeholder
        if len(text) > self._longest:
            self._note(PlaceholderSpan(0, len(text), TOO_LONG, "unchecked"), walk)
            return TOO_LONG
        try:
            return self._without_secrets(text, walk)
        except OverBudget:
            self._note(PlaceholderSpan(0, len(text), TOO_COSTLY, "unchecked"), walk)
            return TOO_COSTLY

    def _without_secrets(self, text: str, walk: TextWalk) -> str:
        for _ in range(_ROUNDS):  # the rest of one secret may be another
            spans = self.spans(text, is_link=walk.is_link) + self._find_unchecked(text, is_data=walk.is_data)
            spans += self._line_spans(text) if walk.is_line else ()
            if not spans:
                break
            spans = merge_overlaps(spans)
            for span in spans:
                self._note(span, walk)
            text = _insert_placeholders(text, spans)
        return text

    def spans(self, text: str, *, is_link: bool = False) -> list[PlaceholderSpan]:
        """Return the ranges of secrets in a text, found there or known from elsewhere; raise OverBudget."""
        spans = [self._known.span(text, finding) for finding in self._findings(text)]
        spans += self._known.secrets(text)
        if not is_link:  # a name must not break a link
            spans += self._known.names(text)
        return merge_overlaps(spans) if spans else spans

    def _line_spans(self, text: str) -> Iterator[PlaceholderSpan]:
        """Yield the secrets with a space that was a line end, and the beginning of a secret where the text was cut."""
        yield from self._known.cut_secret(text)
        lines = text.replace(" ", "\n")
        for finding in self._findings(lines) if lines != text else ():
            if " " in text[finding.start : finding.end]:
                yield self._known.span(lines, finding)

    def _find_unchecked(self, text: str, *, is_data: bool) -> list[PlaceholderSpan]:
        """Return the ranges of data that cannot be checked."""
        return [
            PlaceholderSpan(start, end, f"[left out: {end - start:,} characters of data]", "unchecked")
            for start, end in find_unchecked_data(text, keep_images=self.keeps_images, is_data=is_data)
        ]

    def _findings(self, text: str) -> list[Secret]:
        """Return the secrets found in a text, which is searched once however often it occurs; raise OverBudget."""
        if text not in self._found:
            mark = hash(text), len(text)
            self._found[text] = None
            self._found[text] = found = [] if mark in self._clean else find_secrets(text, self._budget(text))
            if not found:
                self._clean.add(mark)
        known = self._found[text]
        if known is None:
            raise OverBudget
        return known

    def _budget(self, text: str) -> Budget:
        return Budget(len(text), self._free_steps)

    def _note(self, span: PlaceholderSpan, walk: TextWalk) -> None:
        place = RemovalPlace(self._session, self._entry, self._redact_own(walk.field))
        self._removals[span.kind, span.placeholder, place] += 1

    def _redact_own(self, text: str) -> str:
        """Return a text of the report itself without secrets: keys of objects may contain some."""
        try:
            return _insert_placeholders(text, self.spans(text, is_link=True))
        except OverBudget:
            return TOO_COSTLY


def _insert_placeholders(text: str, spans: list[PlaceholderSpan]) -> str:
    pieces: list[str] = []
    place = 0
    for start, end, placeholder, _ in spans:
        pieces += (text[place:start], placeholder)
        place = end
    return "".join((*pieces, text[place:]))


_WHOLE = re.compile(r"[A-Za-z0-9+/_-]++(?:\s{1,2}+[A-Za-z0-9+/_-]++)*+={0,2}+\s*+\Z")
"""Runs of base64 with breaks between them. Possessive: a match never backtracks, so it takes linear time."""
_LINE = 60
"""Least characters of a run that another one follows: encoders break no line before."""
_URI = re.compile(r";base64,([A-Za-z0-9+/_%=-]{200,})")
_RUN = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_RASTER = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")
"""The beginnings of PNG, JPEG, GIF and WebP in base64."""
_SHORTEST_DATA = 200
_STEP = 500


def find_unchecked_data(text: str, *, keep_images: bool, is_data: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the ranges of base64 that cannot be checked: pictures, fonts, encrypted thoughts; `is_data` if all is data."""
    if (is_data or len(text) >= _SHORTEST_DATA) and _is_whole(text):
        if not _is_harmless(text, keep_images=keep_images):
            yield 0, len(text)
        return
    if len(text) < _SHORTEST_DATA:
        return
    for start, end in _data_runs(text):
        if not _is_harmless(text[start:end], keep_images=keep_images):
            yield start, end


def _is_whole(text: str) -> bool:
    """Return whether a text is nothing but base64, on one line or many."""
    return bool(_WHOLE.match(text)) and all(len(run) >= _LINE for run in text.split()[:-1])


def _data_runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the data of `data:` addresses, and runs so long that they cannot be words: they cross two steps."""
    done = 0
    for place in range(0, len(text) - _STEP, _STEP):
        stride = _RUN.match(text, place, place + _STEP) if place >= done else None
        if not stride or stride.end() < place + _STEP:
            continue
        start = place
        while start > done and _RUN.match(text, start - 1, start):
            start -= 1
        found = _RUN.match(text, start)
        done = found.end() if found else place
        yield start, done
    if ";base64," in text:
        yield from (uri.span(1) for uri in _URI.finditer(text) if uri.end(1) - uri.start(1) < 2 * _STEP)


def _is_harmless(data: str, *, keep_images: bool) -> bool:
    """Return whether data is a picture that may stay, or a text without secrets."""
    if keep_images and data.startswith(_RASTER):
        return True
    try:
        text = base64.b64decode(data.translate({45: 43, 95: 47}) + "==").decode()
    except (binascii.Error, ValueError):
        return False
    try:
        return text.isprintable() and not find_secrets(text)
    except OverBudget:
        return False

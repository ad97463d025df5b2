"""A session without its secrets; one redactor for all sessions of an export."""

from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Any, Self, TypeVar

import msgspec

from retold.model.session import Session
from retold.redaction.assignments import named
from retold.redaction.data import data_in
from retold.redaction.detector import findings
from retold.redaction.placeholders import Placeholders, PlaceholderSpan
from retold.redaction.rules import FREE, Budget, OverBudget
from retold.redaction.secrets import Secret, apart

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


class RemovalPlace(msgspec.Struct, frozen=True):
    """Where something was."""

    session: str | None
    """The key of the session; none for a text that is in none."""
    entry: str | None
    """The id of the message or event, else its place in the timeline; none for what is said of the whole session."""
    field: str
    """The field, from the entry on."""


class Removal(msgspec.Struct, frozen=True):
    """Something that was taken out, as often as it was in one place."""

    kind: str
    placeholder: str
    """What stands there now."""
    count: int
    place: RemovalPlace


T = TypeVar("T", bound=msgspec.Struct)
LONGEST = 50_000_000
TOO_LONG = "[left out: too long to be checked]"
TOO_COSTLY = "[left out: takes too many steps to be checked]"
_ROUNDS = 4


class Redactor:
    """Takes secrets out of sessions and texts; remembers them, so that each has one placeholder in all of them."""

    def __init__(
        self,
        *,
        keep_attachments: bool = False,
        home: str | None = None,
        longest: int = LONGEST,
        free_steps: int = FREE,
    ) -> None:
        """Leave out what cannot be checked, pictures too, unless `keep_attachments` says that they may stay.

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
        """Marks of texts in which nothing was found: whoever is learned from first is looked at again."""
        self._session: str | None = None
        self._entry: str | None = None

    def learn(self, value: msgspec.Struct) -> None:
        """Remember the secrets of a session, so that those that are redacted before it are without them, too."""
        TextWalk(self._learned).struct(value)
        self._found.clear()

    def copy(self) -> Self:
        """Return one that knows the same and has taken out nothing; what it learns, this one does not."""
        other = type(self)(
            keep_attachments=self.keeps_images, longest=self._longest, free_steps=self._free_steps
        )
        other._known, other._clean = self._known.copy(), self._clean  # noqa: SLF001 - its own kind
        return other

    def everything(self) -> Iterator[str]:
        """Yield all that is known, in the same order if it is the same: secrets are among it."""
        return self._known.everything()

    def redacted(self, session: Session, *, is_learned: bool = False) -> Session:
        """Return a session without its secrets, and without those of sessions that came before."""
        if not is_learned:
            TextWalk(self._learned).struct(session)
        self._session, self._entry = self._quiet(session.key), None
        walk = TextWalk(self._visited)
        told = walk.struct(msgspec.structs.replace(session, timeline=()))
        timeline = []
        for place, entry in enumerate(session.timeline):
            self._entry = self._quiet(entry.id) if entry.id else str(place)
            timeline.append(walk.struct(entry))
        self._session = self._entry = None
        self._found.clear()
        redacted: Session = msgspec.structs.replace(told, timeline=tuple(timeline))
        return redacted

    def redacted_text(self, text: str) -> str:
        """Return a text without its secrets, and without those of sessions that came before."""
        walk = TextWalk(self._visited)
        self._learned(text, walk)
        told = self._visited(text, walk)
        self._found.clear()
        return told

    def redacted_value(self, value: T) -> T:
        """Return a value made of texts without its secrets, and without those of sessions that came before."""
        TextWalk(self._learned).struct(value)
        told: T = TextWalk(self._visited).struct(value)
        self._found.clear()
        return told

    def report(self) -> list[Removal]:
        """Return what was taken out so far, in the order in which it was met."""
        return [
            Removal(kind, placeholder, count, place)
            for (kind, placeholder, place), count in self._removals.items()
        ]

    def _learned(self, text: str, walk: TextWalk) -> str:
        """Remember the secrets of a text."""
        kind = named(walk.name, text) if walk.name else None
        if kind:
            self._known.learn(kind, text)
        elif len(text) <= self._longest:
            with suppress(OverBudget):
                for finding in self._findings(text):
                    self._known.span(text, finding)
        return text

    def _visited(self, text: str, walk: TextWalk) -> str:
        """Return a text without secrets, and report them."""
        kind = named(walk.name, text) if walk.name else None
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
        for _ in range(_ROUNDS):  # what is left of one secret may be another
            spans = self.spans(text, is_link=walk.is_link) + self._data(text, is_data=walk.is_data)
            if not spans:
                break
            spans = apart(spans)
            for span in spans:
                self._note(span, walk)
            text = _replaced(text, spans)
        return text

    def spans(self, text: str, *, is_link: bool = False) -> list[PlaceholderSpan]:
        """Return the places of secrets in a text, found in it or known from elsewhere; raises OverBudget."""
        spans = [self._known.span(text, finding) for finding in self._findings(text)]
        spans += self._known.secrets(text)
        if not is_link:  # a name is no reason to part what belongs together
            spans += self._known.names(text)
        return apart(spans) if spans else spans

    def _data(self, text: str, *, is_data: bool) -> list[PlaceholderSpan]:
        """Return the places of what cannot be checked."""
        return [
            PlaceholderSpan(start, end, f"[left out: {end - start:,} characters of data]", "unchecked")
            for start, end in data_in(text, keep_images=self.keeps_images, is_data=is_data)
        ]

    def _findings(self, text: str) -> list[Secret]:
        """Return what is found in a text, which is looked at once however often it occurs; raises OverBudget."""
        if text not in self._found:
            mark = hash(text), len(text)
            self._found[text] = None
            self._found[text] = found = [] if mark in self._clean else findings(text, self._budget(text))
            if not found:
                self._clean.add(mark)
        known = self._found[text]
        if known is None:
            raise OverBudget
        return known

    def _budget(self, text: str) -> Budget:
        return Budget(len(text), self._free_steps)

    def _note(self, span: PlaceholderSpan, walk: TextWalk) -> None:
        place = RemovalPlace(self._session, self._entry, self._quiet(walk.field))
        self._removals[span.kind, span.stand_in, place] += 1

    def _quiet(self, text: str) -> str:
        """Return a text of the report itself without secrets: keys of objects may hold some."""
        try:
            return _replaced(text, self.spans(text, is_link=True))
        except OverBudget:
            return TOO_COSTLY


def _replaced(text: str, spans: list[PlaceholderSpan]) -> str:
    pieces: list[str] = []
    place = 0
    for start, end, stand_in, _ in spans:
        pieces += (text[place:start], stand_in)
        place = end
    return "".join((*pieces, text[place:]))

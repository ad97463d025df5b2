"""The secrets of one export: each has one stand-in, wherever and however it is written."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, Self
from urllib.parse import quote, unquote

from retold.redaction.detector import lower, without_marks
from retold.redaction.secrets import Secret

SHORTEST_EVERYWHERE = 8
"""Shorter ones are taken out where they were found, and stay elsewhere: they may be words."""
SHORTEST_NAME = 5
"""The same for names of users: `max` is also a function."""
_SHORTEST_LINE = 32
_BY_SHAPE = frozenset(("email", "home"))
"""Kinds that are found wherever they stand, and need not be remembered; names have a rule of their own."""
_FEW = 256
"""So many secrets or names are looked for one after the other: up to twice as many, that is faster than a walk."""
_WORD = re.compile("[a-z0-9]+")
_MOST_ESCAPES = 8
"""How often a value may have been escaped: JSON in JSON in JSON is rare."""
_LINE_END = re.compile(r"(?:(?<!\\)\\++[nrt]|\s)++")


HOME = "~"
"""What stands in for the home of whoever exports."""
_USUAL_HOME = re.compile(r"/(?:home|Users)/|[A-Za-z]:[\\/]Users[\\/]")


class PlaceholderSpan(NamedTuple):
    """A piece of a text, and what is put in its place."""

    start: int
    end: int
    stand_in: str
    kind: str


class Placeholders:
    """What was found so far, and what stands in for it."""

    def __init__(self) -> None:
        self._stand_ins: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()
        self._forms: dict[str, str] = {}
        self._lengths: dict[str, set[int]] = {}
        """For how each form begins, the lengths of the forms that begin so."""
        self._names: dict[str, re.Pattern[str]] = {}
        self._first_words: dict[str, list[str]] = {}
        """The names of users by their first word."""
        self._homes: list[re.Pattern[str]] = []

    def copy(self) -> Self:
        """Return what is known so far; what either learns from now on, the other does not."""
        other = type(self)()
        other._stand_ins, other._kinds, other._forms = (  # noqa: SLF001 - its own kind
            self._stand_ins.copy(),
            self._kinds.copy(),
            self._forms.copy(),
        )
        other._numbers, other._names = self._numbers.copy(), self._names.copy()  # noqa: SLF001
        other._homes = self._homes  # noqa: SLF001
        other._lengths = {start: set(lengths) for start, lengths in self._lengths.items()}  # noqa: SLF001
        other._first_words = {word: list(names) for word, names in self._first_words.items()}  # noqa: SLF001
        return other

    def everything(self) -> Iterator[str]:
        """Yield all that is known, in an order of its own: two that yield the same take out the same."""
        for known in (self._stand_ins.items(), sorted(self._forms.items())):
            for one in known:
                yield from one
        yield from (home.pattern for home in self._homes)

    def learn_home(self, folder: str) -> None:
        """Remember a home that does not lie where homes usually do; one that does is known by its place."""
        if len(folder) >= SHORTEST_EVERYWHERE and not _USUAL_HOME.match(folder):
            self._homes.append(re.compile(re.escape(folder.rstrip("/\\")) + r"(?![\w.-])"))
            self._kinds[HOME] = "home"

    def learn(self, kind: str, found: str) -> str:
        """Return what stands in for a secret; the same for all ways to write it."""
        value = plain(found).lower() if kind == "home" else plain(found)
        if value not in self._stand_ins:
            self._numbers[kind] += 1
            number = self._numbers[kind]
            stand_in = f"user-{number}" if kind == "home" else f"[redacted:{kind}:{number}]"
            self._stand_ins[value], self._kinds[stand_in] = stand_in, kind
            if kind == "home":
                self._names[value] = _mentions(value)
                word = _WORD.search(value)
                self._first_words.setdefault(word[0] if word else "", []).append(value)
        stand_in = self._stand_ins[value]
        if kind not in _BY_SHAPE:
            for form in _forms(kind, found, value):
                self._forms[form] = stand_in
                self._lengths.setdefault(form[:SHORTEST_EVERYWHERE], set()).add(len(form))
        return stand_in

    def span(self, text: str, finding: Secret) -> PlaceholderSpan:
        """Return a finding with what stands in for it."""
        stand_in = self.learn(finding.kind, text[finding.start : finding.end])
        return PlaceholderSpan(finding.start, finding.end, stand_in, self._kinds[stand_in])

    def secrets(self, text: str) -> Iterator[PlaceholderSpan]:
        """Yield where a secret stands that was found elsewhere."""
        for place, form in self._places(text) if len(self._forms) > _FEW else self._few_places(text):
            stand_in = self._forms[form]
            yield PlaceholderSpan(place, place + len(form), stand_in, self._kinds[stand_in])
        for home in self._homes:
            yield from (PlaceholderSpan(*found.span(), HOME, "home") for found in home.finditer(text))

    def _few_places(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield where each form stands: for a few forms, to look for one after the other is faster."""
        for form in self._forms:
            place = text.find(form)
            while place >= 0:
                yield place, form
                place = text.find(form, place + len(form))

    def _places(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield where each form stands, in one walk through the text, however many forms there are."""
        ends: dict[str, int] = {}
        for place in range(len(text) - SHORTEST_EVERYWHERE + 1):
            for length in self._lengths.get(text[place : place + SHORTEST_EVERYWHERE], ()):
                form = text[place : place + length]
                if form in self._forms and ends.get(form, 0) <= place:
                    ends[form] = place + length
                    yield place, form

    def names(self, text: str) -> Iterator[PlaceholderSpan]:
        """Yield where somebody is named whose home was found."""
        if not self._names:
            return
        low = lower(text)
        for name in self._names if len(self._names) <= _FEW else self._named(low):
            if name not in low:
                continue
            for mention in self._names[name].finditer(low):
                yield PlaceholderSpan(*mention.span(mention.lastindex or 0), self._stand_ins[name], "home")

    def _named(self, low: str) -> Iterator[str]:
        """Yield the names whose first word is in a text; it may follow a line feed that is written out."""
        words = set(_WORD.findall(low))
        words |= {word[1:] for word in words if word[0] in "nrt"}
        for word in (*sorted(words), ""):
            yield from self._first_words.get(word, ())


def plain(found: str) -> str:
    """Return a value without the escapes of JSON and addresses."""
    value = without_marks(found)
    for _ in range(_MOST_ESCAPES):
        if "\\" not in value:
            break
        try:
            once: str = json.loads(f'"{value}"', strict=False)
        except ValueError:  # a backslash that escapes nothing
            break
        value = once
    return unquote(value, errors="strict") if "%" in value and _is_encoded(value) else value


def _is_encoded(value: str) -> bool:
    try:
        return quote(unquote(value, errors="strict"), safe="").lower() == value.lower()
    except (UnicodeDecodeError, UnicodeEncodeError):
        return False


def _forms(kind: str, found: str, value: str) -> set[str]:
    """Return how a secret may be written elsewhere."""
    if kind == "private-key":
        return {line for line in _LINE_END.split(found) if len(line) >= _SHORTEST_LINE}
    forms = {found, value}
    try:
        once = json.dumps(value, ensure_ascii=False)[1:-1]
        forms |= {once, json.dumps(once, ensure_ascii=False)[1:-1], quote(value, safe="")}
    except UnicodeEncodeError:  # half a character
        pass
    return {form for form in forms if len(form) >= SHORTEST_EVERYWHERE}


def _mentions(name: str) -> re.Pattern[str]:
    """Return where a name means the user: as a word of its own or, if it is short, where users are named."""
    word = re.escape(name)
    end = r"(?![a-z0-9])"
    if len(name) >= SHORTEST_NAME:
        return re.compile(rf"(?:(?<![a-z0-9])|(?<=\\[nrt])){word}{end}")
    named = r"\b(?:user|logname|username|owner|login)\\*[\"']?[=:]\s*\\*[\"']?"
    listed = r"^[-dlbcps][-rwxst]{9}\S?\s+\d+\s+(?:\w+\s+)?"
    return re.compile(
        rf"(?:{named}|{listed})({word}){end}|(?<![a-z0-9])({word})(?=@[\w.-]+[:~ ])", re.MULTILINE
    )

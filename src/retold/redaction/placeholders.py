"""The secrets of one export: each has one placeholder, wherever and however it is written."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, Self
from urllib.parse import quote, unquote

from retold.redaction.detector import lower_ascii, strip_marks
from retold.redaction.secrets import Secret

SHORTEST_EVERYWHERE = 8
"""Shorter secrets are removed only where they were found: elsewhere they may be words."""
SHORTEST_NAME = 5
"""Shorter names of users are removed only where they clearly name a user: `max` is also a function."""
_SHORTEST_LINE = 32
_BY_SHAPE = frozenset(("email", "home"))
"""Kinds that the detector finds everywhere by their form, so that they need not be searched for."""
_FEW = 256
"""Up to so many secrets or names, a search for each is used; up to twice as many, that is faster than one pass."""
_CUT = "…"
"""The end of a text that was cut."""
_LONGEST_CUT, _SHORTEST_CUT = 200, 4
"""Characters of the beginning of a secret at the end of a text that was cut."""
_WORD = re.compile("[a-z0-9]+")
_MOST_ESCAPES = 8
"""How many times a value may have been escaped: JSON in JSON in JSON is rare."""
_LINE_END = re.compile(r"(?:(?<!\\)\\++[nrt]|\s)++")


HOME = "~"
"""The placeholder for the home folder of the user."""
_USUAL_HOME = re.compile(r"/(?:home|Users)/|[A-Za-z]:[\\/]Users[\\/]")


class PlaceholderSpan(NamedTuple):
    """A range of a text, and the placeholder that replaces it."""

    start: int
    end: int
    placeholder: str
    kind: str


class Placeholders:
    """The secrets found so far, with their placeholders."""

    def __init__(self) -> None:
        self._placeholders: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()
        self._forms: dict[str, str] = {}
        self._lengths: dict[str, set[int]] = {}
        """The lengths of all forms with the same first characters, by these characters."""
        self._names: dict[str, re.Pattern[str]] = {}
        self._first_words: dict[str, list[str]] = {}
        """The names of users by their first word."""
        self._homes: list[re.Pattern[str]] = []

    def copy(self) -> Self:
        """Return an independent copy."""
        other = type(self)()
        for name, value in vars(self).items():
            setattr(other, name, value.copy())
        other._lengths = {start: set(lengths) for start, lengths in self._lengths.items()}  # noqa: SLF001 - its own kind
        other._first_words = {word: list(names) for word, names in self._first_words.items()}  # noqa: SLF001 - the same
        return other

    def known_values(self) -> Iterator[str]:
        """Yield everything known, in a fixed order: two objects that yield the same texts remove the same secrets."""
        for known in (self._placeholders.items(), sorted(self._forms.items())):
            for one in known:
                yield from one
        yield from (home.pattern for home in self._homes)

    def learn_home(self, folder: str) -> None:
        """Remember a home folder in an unusual place; the detector finds those in the usual places."""
        if len(folder) >= SHORTEST_EVERYWHERE and not _USUAL_HOME.match(folder):
            self._homes.append(re.compile(re.escape(folder.rstrip("/\\")) + r"(?![\w.-])"))
            self._kinds[HOME] = "home"

    def learn(self, kind: str, found: str) -> str:
        """Remember a secret and return its placeholder, which is the same for all ways to write it."""
        value = unescape(found).lower() if kind == "home" else unescape(found)
        if value not in self._placeholders:
            self._numbers[kind] += 1
            number = self._numbers[kind]
            placeholder = f"user-{number}" if kind == "home" else f"[redacted:{kind}:{number}]"
            self._placeholders[value], self._kinds[placeholder] = placeholder, kind
            if kind == "home":
                self._names[value] = _mentions(value)
                word = _WORD.search(value)
                self._first_words.setdefault(word[0] if word else "", []).append(value)
        placeholder = self._placeholders[value]
        if kind not in _BY_SHAPE:
            for form in _forms(kind, found, value):
                self._forms[form] = placeholder
                self._lengths.setdefault(form[:SHORTEST_EVERYWHERE], set()).add(len(form))
        return placeholder

    def span(self, text: str, finding: Secret) -> PlaceholderSpan:
        """Remember a secret in a text and return its range with its placeholder."""
        placeholder = self.learn(finding.kind, text[finding.start : finding.end])
        return PlaceholderSpan(finding.start, finding.end, placeholder, self._kinds[placeholder])

    def secrets(self, text: str) -> Iterator[PlaceholderSpan]:
        """Yield the ranges of secrets that were found elsewhere."""
        for place, form in self._find_in_one_pass(text) if len(self._forms) > _FEW else self._find_each(text):
            placeholder = self._forms[form]
            yield PlaceholderSpan(place, place + len(form), placeholder, self._kinds[placeholder])
        for home in self._homes:
            yield from (PlaceholderSpan(*found.span(), HOME, "home") for found in home.finditer(text))

    def cut_secret(self, text: str) -> Iterator[PlaceholderSpan]:
        """Yield the range of the beginning of a known secret at the end of a text that was cut."""
        end = len(text) - len(_CUT)
        if not text.endswith(_CUT) or not self._forms:
            return
        forms = {" ".join(form.split()): form for form in self._forms}
        for place in range(max(0, end - _LONGEST_CUT), end - _SHORTEST_CUT + 1):
            if text[place - 1 : place].isalnum():
                continue
            beginning = text[place:end].rstrip()
            form = next((form for line, form in forms.items() if line.startswith(beginning)), None)
            if form is not None and len(beginning) >= _SHORTEST_CUT:
                placeholder = self._forms[form]
                yield PlaceholderSpan(place, place + len(beginning), placeholder, self._kinds[placeholder])
                return

    def _find_each(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the positions of each form, with one search for each form."""
        for form in self._forms:
            place = text.find(form)
            while place >= 0:
                yield place, form
                place = text.find(form, place + len(form))

    def _find_in_one_pass(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the positions of each form, in one pass through the text however many forms there are."""
        ends: dict[str, int] = {}
        for place in range(len(text) - SHORTEST_EVERYWHERE + 1):
            for length in self._lengths.get(text[place : place + SHORTEST_EVERYWHERE], ()):
                form = text[place : place + length]
                if form in self._forms and ends.get(form, 0) <= place:
                    ends[form] = place + length
                    yield place, form

    def names(self, text: str) -> Iterator[PlaceholderSpan]:
        """Yield the ranges of names of users whose homes were found."""
        if not self._names:
            return
        low = lower_ascii(text)
        for name in self._names if len(self._names) <= _FEW else self._names_in(low):
            if name not in low:
                continue
            for mention in self._names[name].finditer(low):
                yield PlaceholderSpan(*mention.span(mention.lastindex or 0), self._placeholders[name], "home")

    def _names_in(self, low: str) -> Iterator[str]:
        """Yield the names whose first word is in a text, perhaps after a line feed written as an escape."""
        words = set(_WORD.findall(low))
        words |= {word[1:] for word in words if word[0] in "nrt"}
        for word in (*sorted(words), ""):
            yield from self._first_words.get(word, ())


def unescape(found: str) -> str:
    """Return a value without the escapes of JSON and addresses."""
    value = strip_marks(found)
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
    """Return the forms in which a secret may be written elsewhere."""
    if kind == "private-key":
        return {line for line in _LINE_END.split(found) if len(line) >= _SHORTEST_LINE}
    forms = {found, value, " ".join(value.split())}
    try:
        once = json.dumps(value, ensure_ascii=False)[1:-1]
        forms |= {once, json.dumps(once, ensure_ascii=False)[1:-1], quote(value, safe="")}
    except UnicodeEncodeError:  # half a character
        pass
    return {form for form in forms if len(form) >= SHORTEST_EVERYWHERE}


def _mentions(name: str) -> re.Pattern[str]:
    """Return the pattern of a user's name: any whole word or, if the name is short, only where a user is expected."""
    word = re.escape(name)
    end = r"(?![a-z0-9])"
    if len(name) >= SHORTEST_NAME:
        return re.compile(rf"(?:(?<![a-z0-9])|(?<=\\[nrt])){word}{end}")
    named = r"\b(?:user|logname|username|owner|login)\\*[\"']?[=:]\s*\\*[\"']?"
    listed = r"^[-dlbcps][-rwxst]{9}\S?\s+\d+\s+(?:\w+\s+)?"
    return re.compile(
        rf"(?:{named}|{listed})({word}){end}|(?<![a-z0-9])({word})(?=@[\w.-]+[:~ ])", re.MULTILINE
    )

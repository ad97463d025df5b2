"""A session without its secrets; one redactor for all sessions of an export."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Self, TypeVar

import msgspec

from retold.model.session import Session
from retold.redaction.assignments import named
from retold.redaction.budget import FREE, Budget, OverBudget
from retold.redaction.data import data_in
from retold.redaction.detector import findings
from retold.redaction.finding import Secret, apart
from retold.redaction.known import Placeholders, PlaceholderSpan
from retold.redaction.report import Removal, RemovalPlace
from retold.redaction.walk import TextWalk

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

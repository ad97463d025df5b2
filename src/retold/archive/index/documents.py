"""What was said in a session, cut into the documents that a search finds: text only, with the place of each."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from retold.archive.store import packed
from retold.model.session import (
    AgentDisplay,
    Attachment,
    Context,
    DiffDisplay,
    Display,
    Event,
    FilesDisplay,
    Message,
    Opaque,
    OpaqueDisplay,
    Part,
    Session,
    Text,
    TextDisplay,
    Thinking,
    TodosDisplay,
    ToolCall,
    is_spoken,
)

HEAD = -1
"""The place of what is said about the session as a whole: its summary."""


LONG = 600
"""Arguments that are longer are contents of files: they stand with what went by, not with what was said."""
_SPOKEN = ("agent", "ask_user", "memory", "planning", "shell_exec")


class SearchDocument(msgspec.Struct, gc=False):
    """A message, or what one call gave back: what a person said, what the agent did, and what only went by."""

    seq: int
    place: int | None
    human: list[str]
    agent: list[str]
    output: list[str]


class SpokenText(msgspec.Struct, gc=False):
    """The documents of one message, and all their texts in the order in which agents write them down."""

    docs: list[SearchDocument]
    texts: list[tuple[int, str]]
    """Each with the number of its document."""


def documents(session: Session) -> Iterator[SpokenText]:
    """Yield everything that a search should find, message by message; nothing of a session in which nobody spoke."""
    if not is_spoken(session):
        return
    for seq, entry in enumerate(session.timeline):
        spoken = _of_message(seq, entry) if isinstance(entry, Message) else _of_event(seq, entry)
        if spoken.texts:
            yield spoken
    if session.summary:
        yield SpokenText([SearchDocument(HEAD, None, [session.summary], [], [])], [(0, session.summary)])


def _of_event(seq: int, event: Event) -> SpokenText:
    texts = [event.text] if event.text else []
    if event.opaque is not None:
        texts.extend(strings(event.opaque.value))
    return SpokenText([SearchDocument(seq, None, [], texts, [])], [(0, text) for text in texts])


def _of_message(seq: int, message: Message) -> SpokenText:
    own = SearchDocument(seq, None, [], [], [])
    docs, texts = [own], []
    said = own.human if message.role == "user" else own.agent
    if message.prompt is not None and not _holds(message, message.prompt):
        own.human.append(message.prompt)
        texts.append((0, message.prompt))
    for place, part in enumerate(message.parts):
        if isinstance(part, ToolCall):
            asked, given = list(strings(part.arguments)), list(_given(part))
            own.agent.append(part.name)  # found as a word; what is shown of it is told with the hit
            for text in asked:
                (own.output if len(text) > LONG and part.canonical not in _SPOKEN else own.agent).append(text)
            texts.extend([(0, text) for text in asked])
            if given:
                texts.extend([(len(docs), text) for text in given])
                docs.append(SearchDocument(seq, place, [], [], given))
            if part.description:
                own.agent.append(part.description)
                texts.append((0, part.description))
        else:
            told = [part.text] if type(part) is Text else list(_beside(part))
            column = said if type(part) is Text else own.agent if type(part) is Thinking else own.output
            column.extend(told)
            texts.extend([(0, text) for text in told])
    return SpokenText(docs, texts)


def _holds(message: Message, prompt: str) -> bool:
    return any(type(part) is Text and part.text == prompt for part in message.parts)


def _beside(part: Part) -> Iterator[str]:
    match part:
        case Thinking():
            yield from (text for text in (part.subject, part.text) if text)
        case Context():
            if part.text:
                yield part.text
        case Attachment():
            if part.path:
                yield part.path
        case Opaque():
            yield from strings(part.value)


def _given(call: ToolCall) -> Iterator[str]:
    """Yield what a call gave back; what the agent showed of it is often the same again, or a part of it."""
    kept: list[str] = []
    shown = _shown(call.display) if call.display is not None else ()
    for text in chain((call.result, call.error, call.full_result), call.other_results, shown):
        if text and not any(text in other for other in kept):
            kept.append(text)
            yield text


def _shown(display: Display) -> Iterator[str]:
    match display:
        case TextDisplay(text):
            yield text
        case DiffDisplay():
            # What stands before and after the change, as far as it changed.
            yield from (text for text in (display.path, display.diff) if text)
        case TodosDisplay():
            yield from (todo.text for todo in display.todos)
        case FilesDisplay():
            yield from (text for text in (display.summary, *display.files) if text)
            yield from strings(list(display.matches))
        case AgentDisplay():
            yield from (text for text in (display.name, display.result) if text)
            yield from strings(list(display.activity))
        case OpaqueDisplay(value):
            yield from strings(value)


def strings(value: Any) -> Iterator[str]:
    """Yield every text in a tree of JSON, in its order."""
    pending = [value]
    while pending:
        found = pending.pop()
        if type(found) is str:
            if found:
                yield found
        elif type(found) is dict:
            pending.extend(reversed(found.values()))
        elif type(found) is list:
            pending.extend(reversed(found))


LARGEST = 64 << 20
"""Originals larger than this are not looked through; what they say is kept on pages."""
PAGE = 1 << 20
_FIRST = 96
_NEAR, _FAR = 1 << 14, 1 << 17
_LONG = 48
"""Shorter texts stand in many places: to have found one does not tell how far we are."""
_TRIES = 8
_PASSES = 12
"""How many times the size of all originals may be looked through for texts that are not where they should be."""
_LOOK = 64
"""Bytes that a look into another original costs besides those that are looked through."""


class _Strip:
    """An original, and how far along it we are: with the message, and with the text in it."""

    __slots__ = ("along", "aside", "data", "end", "here", "number")

    def __init__(self, number: int, data: bytes) -> None:
        self.number, self.data = number, data
        self.along = self.here = self.end = 0
        self.aside = len(data)

    def windows(self) -> Iterator[tuple[int, int]]:
        """Yield where to look: next, near, and at last anywhere."""
        near, size = min(self.here + _NEAR, len(self.data)), len(self.data)
        yield self.here, near
        yield self.along, self.here
        yield near, size
        yield 0, self.along

    def pass_by(self, start: int, end: int) -> None:
        """Go on behind what was found: far off only after a second find there, since the same may be said twice."""
        if not self.along <= start <= self.here + _FAR and not self.aside <= start <= self.aside + _FAR:
            self.aside = end
            return
        self.here, self.end = end, max(self.end, end)

    def move(self) -> None:
        """Go on with the next message."""
        self.along = self.here = self.end


class TextLocator:
    """Finds texts in the originals of one session, going along with them."""

    def __init__(self, originals: Sequence[tuple[int, bytes]]) -> None:
        """Take the originals by their ids."""
        self._strips = [_Strip(number, data) for number, data in originals if len(data) <= LARGEST]
        self._budget = _PASSES * sum(len(strip.data) for strip in self._strips) + PAGE
        self._passed: list[_Strip] = []
        """Those in which a text of this message was found."""
        self._page = bytearray()
        self._packed: list[bytes] = []

    def regions(self, spoken: SpokenText) -> list[str]:
        """Return where the texts of each document of a message stand, one behind the other."""
        found: list[list[str]] = [[] for _ in spoken.docs]
        for number, text in spoken.texts:
            found[number].append(self._region(text))
        for strip in self._passed:
            strip.move()
        self._passed.clear()
        return [" ".join(regions) for regions in found]

    def pages(self) -> list[bytes]:
        """Return what stands in no original, on pages that are packed."""
        return [*self._packed, packed(bytes(self._page))] if self._page else self._packed

    def _region(self, text: str) -> str:
        raw = escaped(text)
        for place, strip in enumerate(self._strips):
            if place and self._budget < 0:  # many versions of a file may lack a text
                break
            found = self._next(raw, strip)
            if found < 0:
                found = self._find(raw, strip)
            if found >= 0:
                if len(raw) >= _LONG:
                    strip.pass_by(found, found + len(raw))
                    self._passed.append(strip)
                return f"{strip.number:x}.{found:x}.{len(raw):x}"
        return self._on_page(raw)

    def _next(self, raw: bytes, strip: _Strip) -> int:
        """Return where a short text stands if it comes next, as nearly always; else -1."""
        if len(raw) > _FIRST:
            return -1
        found = strip.data.find(raw, strip.here, strip.here + _NEAR + len(raw))
        if strip is not self._strips[0]:
            self._budget -= _LOOK + (min(_NEAR, len(strip.data)) if found < 0 else found - strip.here)
        return found

    def _find(self, raw: bytes, strip: _Strip) -> int:
        """Return where a text stands; -1 where it stands nowhere, or where to look for it would take too long."""
        first, data = raw[:_FIRST], strip.data
        for start, end in strip.windows():
            found = start
            for _ in range(_TRIES):
                if self._budget < 0:
                    return -1
                place = data.find(first, found, end + len(first))
                self._budget -= (end if place < 0 else place) - found
                if place < 0:
                    break
                if data.startswith(raw, place):
                    return place
                found = place + 1
        return -1

    def _on_page(self, raw: bytes) -> str:
        if self._page and len(self._page) + len(raw) > PAGE:
            self._packed.append(packed(bytes(self._page)))
            self._page.clear()
        start = len(self._page)
        self._page.extend(raw)
        self._page.extend(b"\n")  # no text of a search runs over from one to the next
        return f"-{len(self._packed):x}.{start:x}.{len(raw):x}"


def escaped(text: str) -> bytes:
    """Return a text as it stands between the quotes of JSON."""
    try:
        return msgspec.json.encode(text)[1:-1]
    except UnicodeEncodeError:  # half a surrogate pair
        return msgspec.json.encode(text.encode("utf-8", "replace").decode())[1:-1]

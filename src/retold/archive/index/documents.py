"""Documents for the text index: the texts of a session, and the regions of its originals where they are."""

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import msgspec

from retold.archive.store import compress
from retold.model.session import (
    AgentDisplay,
    Attachment,
    Context,
    DiffDisplay,
    Display,
    Entry,
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

SUMMARY_SEQ = -1
"""The seq of a session's summary."""


LONG_ARGUMENT = 600
"""Longer arguments are contents of files: they count as output, not as conversation."""
_CONVERSATIONAL_TOOLS = ("agent", "ask_user", "memory", "planning", "shell_exec")


class SearchDocument(msgspec.Struct, gc=False):
    """A message, or the output of one call: what a person said, what the agent did, and output."""

    seq: int
    position: int | None
    """Of the call whose output it is."""
    human: list[str]
    agent: list[str]
    output: list[str]


class MessageDocuments(msgspec.Struct, gc=False):
    """The documents of one message, and all their texts in the order in which agents write them."""

    docs: list[SearchDocument]
    texts: list[tuple[int, str]]
    """Each with the index of its document."""


def entry_texts(seq: int, entry: Entry) -> str:
    """Return the texts of an entry that have regions, in the order of its documents."""
    found = _of_entry(seq, entry)
    return "".join([text for _, text in sorted(found.texts, key=itemgetter(0))])


def make_documents(session: Session, first: int = 0) -> Iterator[MessageDocuments]:
    """Yield all documents of a session, message by message; none if nobody spoke.

    `first` is the seq of its first entry, of a session that was read from a bookmark on.
    """
    if not first and not is_spoken(session):
        return
    for seq, entry in enumerate(session.timeline, first):
        found = _of_entry(seq, entry)
        if found.texts:
            yield found
    if session.summary:
        yield MessageDocuments(
            [SearchDocument(SUMMARY_SEQ, None, [session.summary], [], [])], [(0, session.summary)]
        )


def _of_entry(seq: int, entry: Entry) -> MessageDocuments:
    return _of_message(seq, entry) if isinstance(entry, Message) else _of_event(seq, entry)


def _of_event(seq: int, event: Event) -> MessageDocuments:
    texts = [event.text] if event.text else []
    if event.opaque is not None:
        texts.extend(iterate_strings(event.opaque.value))
    return MessageDocuments([SearchDocument(seq, None, [], texts, [])], [(0, text) for text in texts])


def _of_message(seq: int, message: Message) -> MessageDocuments:
    own = SearchDocument(seq, None, [], [], [])
    docs, texts = [own], []
    said = own.human if message.role == "user" else own.agent
    prompt = message.prompt
    if prompt is not None and not any(type(part) is Text and part.text == prompt for part in message.parts):
        own.human.append(prompt)
        texts.append((0, prompt))
    for position, part in enumerate(message.parts):
        if isinstance(part, ToolCall):
            arguments, outputs = list(iterate_strings(part.arguments)), list(_output_texts(part))
            own.agent.append(part.name)  # a word to find; it needs no region
            is_conversation = part.canonical in _CONVERSATIONAL_TOOLS
            for text in arguments:
                (own.agent if is_conversation or len(text) <= LONG_ARGUMENT else own.output).append(text)
            texts.extend([(0, text) for text in arguments])
            if outputs:
                texts.extend([(len(docs), text) for text in outputs])
                docs.append(SearchDocument(seq, position, [], [], outputs))
            if part.description:
                own.agent.append(part.description)
                texts.append((0, part.description))
        else:
            found = [part.text] if type(part) is Text else list(_part_texts(part))
            column = said if type(part) is Text else own.agent if type(part) is Thinking else own.output
            column.extend(found)
            texts.extend([(0, text) for text in found])
    return MessageDocuments(docs, texts)


def _part_texts(part: Part) -> Iterator[str]:
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
            yield from iterate_strings(part.value)


def _output_texts(call: ToolCall) -> Iterator[str]:
    """Yield the output of a call. What the agent displayed of it is often the same text, or a part of it."""
    texts: list[str] = []
    shown = _display_texts(call.display) if call.display is not None else ()
    for text in chain((call.result, call.error, call.full_result), call.other_results, shown):
        if text and not any(text in other for other in texts):
            texts.append(text)
            yield text


def _display_texts(display: Display) -> Iterator[str]:
    match display:
        case TextDisplay(text):
            yield text
        case DiffDisplay():
            yield from (text for text in (display.path, display.diff) if text)
        case TodosDisplay():
            yield from (todo.text for todo in display.todos)
        case FilesDisplay():
            yield from (text for text in (display.summary, *display.files) if text)
            yield from iterate_strings(list(display.matches))
        case AgentDisplay():
            yield from (text for text in (display.name, display.result) if text)
            yield from iterate_strings(list(display.activity))
        case OpaqueDisplay(value):
            yield from iterate_strings(value)


def iterate_strings(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, in its order."""
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


LARGEST_ORIGINAL = 64 << 20
"""Larger originals are not searched; their texts are kept on pages."""
PAGE = 1 << 20
_NESTED = ".2"
"""The end of a region whose text is escaped twice: it is in JSON that is a string of JSON."""
_PREFIX = 96
_NEAR, _FAR = 1 << 14, 1 << 17
_LONG_TEXT = 48
"""Shorter texts occur in many places, so that a match says nothing about the position in the file."""
_TRIES = 8
_PASSES = 64
"""How often the size of all originals may be searched for texts that are not in order."""
_LOOK_COST = 64
"""Bytes that a look into another original costs, besides those that are searched."""


class _OriginalCursor:
    """An original, and how far the messages and texts that were found in it reach."""

    __slots__ = ("data", "end", "here", "message_start", "number", "other_end")

    def __init__(self, number: int, data: bytes, start: int) -> None:
        self.number, self.data = number, data
        self.message_start = self.here = self.end = start
        self.other_end = len(data)

    def find_next(self, raw: bytes) -> int:
        """Return the position of a text if it comes next, else -1."""
        first = raw[:_PREFIX]
        found = self.data.find(first, self.here, self.here + _NEAR)
        return found if first is raw or self.data.startswith(raw, found) else -1

    def find(self, raw: bytes, *, is_far: bool) -> tuple[int, int]:
        """Return the position of a text, -1 if it was not found, and how many bytes were searched.

        It is searched in what comes next and in the message so far, or else in the rest of the original.
        """
        data, here, size = self.data, self.here, len(self.data)
        first, searched = raw[:_PREFIX], _LOOK_COST
        if is_far:
            windows = ((here + _NEAR, size), (0, here))
        else:
            windows = ((here, here + _NEAR), (max(self.message_start, here - _FAR), here))
        for start, end in windows:
            found = start
            for _ in range(_TRIES):
                position = data.find(first, found, end + len(first))
                searched += (min(end, size) if position < 0 else position) - found
                if position < 0:
                    break
                if data.startswith(raw, position):
                    return position, searched
                found = position + 1
        return -1, searched

    def advance(self, start: int, end: int) -> None:
        """Go on after a match. After one that is far off, only a second match there counts, because a text may occur twice."""
        if (
            not self.message_start <= start <= self.here + _FAR
            and not self.other_end <= start <= self.other_end + _FAR
        ):
            self.other_end = end
            return
        self.here, self.end = end, max(self.end, end)

    def begin_message(self) -> None:
        """Go on with the next message."""
        self.message_start = self.here = self.end


class TextLocator:
    """Finds the regions of texts in the originals of one session, from front to back."""

    def __init__(self, originals: Sequence[tuple[int, bytes]], start: int = 0, pages: int = 0) -> None:
        """Take the originals with their ids; of a session that was read from a bookmark on, its offset and the pages before."""
        self._cursors = [
            _OriginalCursor(number, data, start)
            for number, data in originals
            if len(data) <= LARGEST_ORIGINAL
        ]
        self._front = self._cursors[0] if self._cursors else _OriginalCursor(0, b"", 0)
        self._budget = _PASSES * sum(len(cursor.data) for cursor in self._cursors) + PAGE
        self._found_in: list[_OriginalCursor] = []
        """Originals with a text of this message."""
        self._page = bytearray()
        self._page_number = pages
        self._full: list[bytes] = []

    def locate(self, message: MessageDocuments) -> list[str]:
        """Return the regions of the texts of each document, separated by blanks."""
        found: list[list[str]] = [[] for _ in message.docs]
        for number, text in message.texts:
            found[number].append(self._locate_text(text))
        for cursor in self._found_in:
            cursor.begin_message()
        self._found_in.clear()
        return [" ".join(regions) for regions in found]

    def take_pages(self, *, is_end: bool = False) -> list[bytes]:
        """Return compressed pages with the texts that are in no original, each page once; the last one at the end."""
        if is_end and self._page:
            self._begin_page()
        pages, self._full = self._full, []
        return pages

    def _begin_page(self) -> None:
        self._full.append(compress(bytes(self._page)))
        self._page_number += 1
        self._page.clear()

    def _locate_text(self, text: str) -> str:
        raw = escape(text)
        found = self._front.find_next(raw)  # nearly all texts follow the one before
        if found >= 0:
            return self._region(self._front, raw, found)
        forms = [(raw, "")]
        if b"\\" in raw:
            forms.append((raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"'), _NESTED))
        return self._search(forms) or self._search(forms, is_far=True) or self._write_on_page(raw)

    def _search(self, forms: Sequence[tuple[bytes, str]], *, is_far: bool = False) -> str | None:
        """Return the region of a text in one of its forms, in the first original that has it."""
        for number, cursor in enumerate(self._cursors):
            is_free = not (number or is_far)
            if self._budget < 0 and not is_free:  # many versions of a file may lack a text
                break
            for raw, ending in forms:
                found, cost = cursor.find(raw, is_far=is_far)
                if not is_free:
                    self._budget -= cost
                if found >= 0:
                    return self._region(cursor, raw, found) + ending
        return None

    def _region(self, cursor: _OriginalCursor, raw: bytes, found: int) -> str:
        if len(raw) >= _LONG_TEXT:
            cursor.advance(found, found + len(raw))
            self._found_in.append(cursor)
        return f"{cursor.number:x}.{found:x}.{len(raw):x}"

    def _write_on_page(self, raw: bytes) -> str:
        if self._page and len(self._page) + len(raw) > PAGE:
            self._begin_page()
        start = len(self._page)
        self._page.extend(raw)
        self._page.extend(b"\n")  # no match may span two texts
        return f"-{self._page_number:x}.{start:x}.{len(raw):x}"


def escape(text: str) -> bytes:
    """Return a text as it is between the quotes of JSON."""
    try:
        return msgspec.json.encode(text)[1:-1]
    except UnicodeEncodeError:  # half a surrogate pair
        return msgspec.json.encode(text.encode("utf-8", "replace").decode())[1:-1]

"""What was said in a session, cut into the documents that a search finds: text only, with the place of each."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec

from retold.model.session import (  # fmt: skip
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

"""What is counted of one file: every message once, with what all its versions say of what it took."""

import re
from typing import TypeVar

from msgspec import UNSET

from retold.agents.gemini.counts import MetadataRecord, SaidRecord, SpokenRecord
from retold.agents.gemini.groups import session_group
from retold.agents.gemini.places import Origin, origin
from retold.agents.gemini.raw import ENVIRONMENT_ID
from retold.agents.gemini.restored import original_id
from retold.agents.protocol import Source
from retold.model.metered import Unsure

T = TypeVar("T")
_QUOTE = ord('"')
_WORDS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789`*#-") | (
    frozenset(range(0xC3, 0xF5)) - {0xE1, 0xE2, 0xE3}
)
"""Bytes with which words begin, and no blank of any script does."""
_HELD = re.compile(rb"\[\s*\{")


class File:
    """What is counted of one file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.origin: Origin = origin(source)
        self.said: dict[str, SaidRecord] = {}
        """Every message by its id, with what all its versions say."""
        self.starts: list[str] = []
        self.metadata: dict[str, str] = {}
        self.speakers: set[str] = set()
        """Answers that surely say something, in every version; where lines tell, one is enough."""
        self.bare: set[str] = set()
        """What a list holds without a model: it may be a copy there."""
        self.is_tangled = False
        """Whether the last message need not be the one that was said last."""

    def put(self, record: SaidRecord) -> None:
        """Take a message in, or another version of it."""
        known = self.said.setdefault(record.id, record)
        if known is not record:
            self.is_tangled = not _add(known, record) or self.is_tangled

    def put_spoken(self, record: SpokenRecord) -> None:
        """Take a message in, and whether it says anything."""
        if not _speaks(record):
            self.speakers.discard(record.id)
        elif record.id not in self.said:
            self.speakers.add(record.id)
        self.put(record)

    def tell(self, record: MetadataRecord, *, is_begin: bool) -> None:
        """Take in what is said about the session, and its messages."""
        if record.retold is not UNSET:
            raise Unsure
        if is_begin and record.start_time is not UNSET:
            self.starts.append(record.start_time)
        for name in ("session_id", "project_hash", "last_updated", "kind"):
            value = getattr(record, name)
            if value is not UNSET:
                self.metadata[name] = value
        if record.messages is not UNSET:
            self.is_tangled = self.is_tangled or not is_begin
            for message in record.messages:
                self.put_spoken(message)
                if not is_begin and not message.model:
                    self.bare.add(message.id)

    @property
    def native_id(self) -> str:
        """The id of the session."""
        told = self.metadata.get("session_id")
        if not told or original_id(told) != told:
            raise Unsure
        return told

    @property
    def group(self) -> str:
        """What all files of its conversation share."""
        first = next((name for name in self.said if name != ENVIRONMENT_ID), str(self.source.path))
        about = self.metadata
        return session_group(self.origin, self.native_id, about.get("project_hash"), about.get("kind"), first)

    @property
    def order(self) -> tuple[str, str, str]:
        """Earlier files first, as `merge` has it."""
        return (
            min(self.starts, default=self.origin.stem.removeprefix("session-")),
            self.origin.stem,
            self.source.shown,
        )


def _add(known: SaidRecord, other: SaidRecord) -> bool:
    """Take another version of a message in; tell whether both were said at the same time."""
    if other.type != known.type or "" in (known.model, other.model):
        raise Unsure
    known.tokens = _agreed(known.tokens, other.tokens)
    known.model = _agreed(known.model, other.model)
    known.rewind_to = other.rewind_to if known.rewind_to is UNSET else known.rewind_to
    is_same = known.timestamp == other.timestamp
    if not is_same and known.type == "gemini":
        raise Unsure  # the earliest counts as text, and texts need not sort as times do
    known.timestamp = min(known.timestamp, other.timestamp)
    return is_same


def _speaks(record: SpokenRecord) -> bool:
    """Tell whether a message of the model surely says or does something."""
    if record.type != "gemini":
        return False
    content = memoryview(record.content)
    if len(content) > 1 and content[0] == _QUOTE and content[1] in _WORDS:
        return True
    return any(_HELD.match(memoryview(held)) for held in (record.tool_calls, record.thoughts))


def _agreed(one: T | None, other: T | None) -> T | None:
    """Return what versions say of which only some may say it."""
    if one is None or other is None or one == other:
        return other if one is None else one
    raise Unsure

"""Words of people and models, taken apart: paragraphs, sentences, and no more of either than is of use."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from retold.model.session import Entry, Message, Text, words_of

LONGEST = 20_000
"""Characters of a text that are looked at: what is longer was pasted, or is a document of its own."""
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_BLANK = re.compile(r"\n[ \t]*\n")
_NO_PROSE = ("|", ">", "<", "$ ", "+++", "---", "@@", "diff ")
_ITEM = re.compile(r"^(?:[-*+•]|\d{1,3}[.)]|#{1,6})\s+(?:\[[ xX]\]\s+)?")
_END = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])[\"'\u201d\u2019)*_]*\s+(?=\S)|(?<=[\u3002\uff01\uff1f])")
_HALF = re.compile(r"(?<![\x21-\x7e])[\x21-\x7e]++\Z")
"""A word in letters of ASCII that may go on; scripts without spaces are parted anywhere."""
_MARKS = re.compile(r"\*\*|__(?=\w)|(?<=\w)__")


def words_said(message: Message) -> str:
    """Return what a message says in words, as far as it is looked at."""
    texts = [part.text for part in message.parts if isinstance(part, Text) and part.text.strip()]
    return looked_at("\n\n".join(texts))


def looked_at(text: str) -> str:
    """Return as much of a text as is looked at."""
    return text if len(text) <= LONGEST else _HALF.sub("", text[:LONGEST])


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text without its code."""
    prose = _FENCE.sub("\n\n", looked_at(text))
    for block in _BLANK.split(prose):
        if block.strip():
            yield block.strip("\n")


def sentences(paragraph: str) -> Iterator[str]:
    """Yield the sentences of a paragraph, each on one line and without marks; a line of a list ends one."""
    flowing: list[str] = []
    for line in paragraph.splitlines():
        plain = line.strip()
        if plain.startswith(_NO_PROSE):
            continue
        item = _ITEM.match(plain)
        if item and flowing:
            yield from _parted(flowing)
            flowing = []
        flowing.append(plain[item.end() :] if item else plain)
    yield from _parted(flowing)


def _parted(lines: list[str]) -> Iterator[str]:
    text = _MARKS.sub("", " ".join(" ".join(lines).split()))
    yield from (sentence.strip() for sentence in _END.split(text) if sentence.strip())


def clipped(text: str, most: int) -> str:
    """Return the beginning of a text, on one line; never half a word, which may be half a secret."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else _HALF.sub("", line[:most]).rstrip() + "…"


def first_sentences(text: str, most: int) -> str:
    """Return as many sentences from the beginning of a text as there is room for; of a long one, its beginning."""
    told = ""
    for paragraph in paragraphs(text):
        for sentence in sentences(paragraph):
            if told and len(told) + 1 + len(sentence) > most:
                return told
            told = f"{told} {sentence}" if told else clipped(sentence, most)
    return told


class TurnPlace(msgspec.Struct, frozen=True, gc=False):
    """A place in a timeline."""

    seq: int
    """Of the entry, from 0."""
    turn: int
    """How many times a person had spoken by then: the number of the turn in an outline; 0 before anybody has."""
    at: datetime | None


class PlacedEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry with its place."""

    place: TurnPlace
    entry: Entry

    @property
    def is_taken_back(self) -> bool:
        """Whether a person took it back."""
        return self.entry.fate == "rewound"


def placed(entries: Iterable[Entry]) -> Iterator[PlacedEntry]:
    """Yield the entries that count, from a whole timeline; those that do not still have their places."""
    turn = 0
    for seq, entry in enumerate(entries):
        turn += words_of(entry) is not None
        if entry.own and entry.fate != "superseded":
            yield PlacedEntry(TurnPlace(seq, turn, entry.at), entry)

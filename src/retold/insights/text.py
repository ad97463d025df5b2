"""Text of messages: paragraphs, sentences and excerpts; and the places of entries in turns."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from retold.model.session import Entry, Message, Text, prompt_words

LONGEST = 20_000
"""Characters of a text that are looked at: a longer one was pasted, or is a document of its own."""
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_BLANK = re.compile(r"\n[ \t]*\n")
_NO_PROSE = ("|", ">", "<", "$ ", "+++", "---", "@@", "diff ")
_ITEM = re.compile(r"^(?:[-*+•]|\d{1,3}[.)]|#{1,6})\s+(?:\[[ xX]\]\s+)?")
_SENTENCE_END = re.compile(
    r"(?<=[.!?\u3002\uff01\uff1f])[\"'\u201d\u2019)*_]*\s+(?=\S)|(?<=[\u3002\uff01\uff1f])"
)
_HALF_WORD = re.compile(r"(?<![\x21-\x7e])[\x21-\x7e]++\Z")
"""A word in ASCII at the end of a cut text. Scripts without spaces can be cut anywhere."""
_EMPHASIS = re.compile(r"\*\*|__(?=\w)|(?<=\w)__")


def message_text(message: Message) -> str:
    """Return the text of a message, cut if it is too long."""
    texts = [part.text for part in message.parts if isinstance(part, Text) and part.text.strip()]
    return cut_text("\n\n".join(texts))


def cut_text(text: str) -> str:
    """Return a text without what is too long to be looked at."""
    return text if len(text) <= LONGEST else _HALF_WORD.sub("", text[:LONGEST])


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text without its code."""
    prose = _FENCE.sub("\n\n", cut_text(text))
    for block in _BLANK.split(prose):
        if block.strip():
            yield block.strip("\n")


def sentences(paragraph: str) -> Iterator[str]:
    """Yield the sentences of a paragraph, each on one line and without emphasis; an item of a list ends a sentence."""
    flowing: list[str] = []
    for line in paragraph.splitlines():
        plain = line.strip()
        if plain.startswith(_NO_PROSE):
            continue
        item = _ITEM.match(plain)
        if item and flowing:
            yield from _split_sentences(flowing)
            flowing = []
        flowing.append(plain[item.end() :] if item else plain)
    yield from _split_sentences(flowing)


def _split_sentences(lines: list[str]) -> Iterator[str]:
    text = _EMPHASIS.sub("", " ".join(" ".join(lines).split()))
    yield from (sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip())


def clip(text: str, most: int) -> str:
    """Return the beginning of a text on one line; without half a word, which may be half a secret."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else _HALF_WORD.sub("", line[:most]).rstrip() + "…"


def first_sentences(text: str, most: int) -> str:
    """Return as many sentences from the beginning of a text as fit; the beginning of the first if it is too long."""
    chosen = ""
    for paragraph in paragraphs(text):
        for sentence in sentences(paragraph):
            if chosen and len(chosen) + 1 + len(sentence) > most:
                return chosen
            chosen = f"{chosen} {sentence}" if chosen else clip(sentence, most)
    return chosen


class TurnPlace(msgspec.Struct, frozen=True, gc=False):
    """The place of an entry in a timeline."""

    seq: int
    """The index of the entry."""
    turn: int
    """The number of the turn, counted from 1; 0 before the first prompt."""
    at: datetime | None


class PlacedEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry with its place."""

    place: TurnPlace
    entry: Entry

    @property
    def is_rewound(self) -> bool:
        """Whether a person took it back."""
        return self.entry.fate == "rewound"


def place_entries(entries: Iterable[Entry]) -> Iterator[PlacedEntry]:
    """Yield the entries of a timeline with their places, without copied and superseded ones."""
    turn = 0
    for seq, entry in enumerate(entries):
        turn += prompt_words(entry) is not None
        if entry.own and entry.fate != "superseded":
            yield PlacedEntry(TurnPlace(seq, turn, entry.at), entry)

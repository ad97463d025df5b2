"""One message, several versions: the richest one, and what the others say that it does not.

A message is written when the response ends and again when its tools are done; a resume writes it once more with its
content in another form, a cancel may write it poorer. What is shown is the richest version at the first version's time.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from retold.agents.gemini.raw import Record, text_parts
from retold.agents.gemini.state import Version
from retold.model.session import Part, ToolCall

_RICH = ("toolCalls", "thoughts", "tokens", "model", "displayContent")
_FEW = 200
_COUNTED = ("tokens", "model")
"""Of these the last version is right: the count of a response is complete when it ends."""


def richest(versions: Sequence[Version]) -> tuple[Record, tuple[Version, ...]]:
    """Return the message at its richest, and the versions that say what it does not."""
    if len(versions) == 1:
        return versions[0][0], ()
    records = [record for record, _ in versions]
    whole = dict(_best(records))
    for record in records:
        for key in _RICH:
            if record.get(key) and (key in _COUNTED or not whole.get(key)):
                whole[key] = record[key]
        if not whole.get("content") and not whole.get("toolCalls"):
            whole["content"] = record.get("content")
    times = [record["timestamp"] for record in records if type(record.get("timestamp")) is str]
    if times:
        whole["timestamp"] = min(times)
    return whole, _others(whole, versions)


def _others(whole: Record, versions: Sequence[Version]) -> tuple[Version, ...]:
    """Return the versions that say something new, each compared with all that was said before it."""
    held = {*_words(whole), *_rendered_thoughts(whole)}
    others: list[Version] = []
    for version in versions:
        words = set(_words(version[0]))
        if not all(_is_held(word, held) for word in words):
            others.append(version)
            held |= words
    return tuple(others)


def ask_alike(versions: Sequence[Version]) -> bool:
    """Tell whether all versions have the same arguments for each call."""
    asked = {pair for record, _ in versions for pair in _asked(record)}
    return len({call for call, _ in asked}) == len(asked)


def asked_otherwise(shown: Iterable[Part], versions: Sequence[Version]) -> Iterator[Version]:
    """Yield the versions with other arguments for a call than those that are shown, each of them once."""
    held = {(part.id, _as_text(part.arguments)) for part in shown if isinstance(part, ToolCall)}
    for version in versions:
        asked = set(_asked(version[0]))
        if not asked <= held:
            yield version
            held |= asked


def _asked(record: Record) -> Iterator[tuple[str, str]]:
    """Yield the id of each call, and its arguments as text where it has some."""
    calls = record.get("toolCalls")
    for call in calls if type(calls) is list else ():
        if (
            type(call) is dict
            and type(call.get("id")) is str
            and type(call.get("args")) is dict
            and call["args"]
        ):
            yield call["id"], _as_text(call["args"])


def _as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _best(records: Sequence[Record]) -> Record:
    """Return the richest; of equals the last, unless it only says the same in a form made for the model."""
    best = records[0]
    for record in records[1:]:
        more = _richness(record) - _richness(best)
        if more > 0 or (more == 0 and not _holds(best, record)):
            best = record
    return best


def _richness(record: Record) -> int:
    return sum(bool(record.get(key)) for key in _RICH)


def _holds(whole: Record, other: Record) -> bool:
    """Tell whether every word of `other` is in `whole`."""
    held = {*_words(whole), *_rendered_thoughts(whole)}
    return all(_is_held(word, held) for word in _words(other))


def _is_held(word: str, held: set[str]) -> bool:
    """Tell whether a word stands among those held, or within one of them where they are few enough to look."""
    return word in held or (len(held) <= _FEW and any(word in text for text in held))


def _words(record: Record) -> Iterator[str]:
    for key in ("content", "displayContent"):
        for part in text_parts(record.get(key)):
            yield from _words_of(part)
    for thought in _thoughts(record):
        for key in ("subject", "description"):
            if type(thought.get(key)) is str and thought[key]:
                yield thought[key]


def _words_of(part: Any) -> Iterator[str]:
    """Yield what a part says; one that is no text, and no call (those are compared by their ids), as a whole."""
    text = part.get("text") if type(part) is dict else part
    if type(text) is str:
        if text:
            yield text
    elif type(part) is dict and "functionCall" not in part:
        yield _as_text(part)


def _rendered_thoughts(record: Record) -> Iterator[str]:
    """Thoughts as a resume writes them into content: `**subject** description`."""
    for thought in _thoughts(record):
        yield f"**{thought.get('subject', '')}** {thought.get('description', '')}"


def _thoughts(record: Record) -> list[Any]:
    thoughts = record.get("thoughts")
    return [thought for thought in thoughts if type(thought) is dict] if type(thoughts) is list else []

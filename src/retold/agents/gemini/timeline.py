"""A replayed file to its two timelines: everything that was ever said, and what the CLI would load."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from retold.agents.gemini.context import Setting
from retold.agents.gemini.normalise import normalise_entry, usual_entry
from retold.agents.gemini.prompt_text import as_task
from retold.agents.gemini.raw import (
    ENVIRONMENT_ID,
    RESPONSE_SUFFIX,
    RESULTS_SUFFIX,
    Record,
    looks_said,
    text_parts,
)
from retold.agents.gemini.state import Key, Plain, State, Version, active_records
from retold.agents.gemini.tool_calls import STARTS_AGENT, Placed, paired
from retold.model.session import Entry, Event, Fate, Message, Opaque, Part, ToolCall
from retold.reading.diagnostics import milliseconds

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


def with_tasks_told(placed: Sequence[Placed]) -> list[Placed]:
    """Return the entries with every task marked as such: nobody typed it."""
    told = list(placed)
    asked: tuple[int, Message, bool] | None = None
    is_going_on = False
    for index, (entry, _, _) in enumerate(placed):
        if type(entry) is not Message:
            continue
        if entry.prompt is not None:
            asked = (index, entry, is_going_on)
        elif asked is not None and entry.role == "assistant":
            place, question, within_turn = asked
            if any(_holds_task(part, question.prompt or "", within_turn) for part in entry.parts):
                task = msgspec.structs.replace(question, prompt=None, parts=as_task(question.parts))
                told[place] = placed[place]._replace(entry=task)
                asked = None
        is_going_on = entry.role == "user" or any(type(part) is ToolCall for part in entry.parts)
    return told


def _holds_task(part: Part, text: str, is_going_on: bool) -> bool:  # noqa: FBT001 - what is known of the turn
    """Tell whether a call was started with this text: its argument stands in it, wrapped or within a turn."""
    if type(part) is not ToolCall or part.name not in STARTS_AGENT:
        return False
    values = [
        value.strip() for value in part.arguments.values() if type(value) is str and value.strip() in text
    ]
    return any(value and (is_going_on or _is_wrapped(value, text)) for value in values)


def _is_wrapped(value: str, text: str) -> bool:
    return re.search(rf"<(\w+)>\s*{re.escape(value)}\s*</\1>", text) is not None


def full_timeline(found: State | Plain, setting: Setting) -> tuple[Entry, ...]:
    """Return everything ever recorded, each once, in order of first appearance."""
    notes = setting.notes
    if isinstance(found, State):
        placed = list(_replayed(found, setting))
    else:
        entries = []
        for index, record in enumerate(found.record.messages):
            notes.place = (0, index)
            entries.append(usual_entry(record, setting))
        if not notes.has_agents and not notes.has_results:
            return tuple(entries)
        placed = [Placed(made, (0, index)) for index, made in enumerate(entries)]
    return paired(with_tasks_told(placed) if notes.has_agents else placed, notes)


def fates(state: State) -> dict[Key, Fate]:
    """Return what became of each message, copies left out."""
    copied, copies = state.copies, _copies_by_original(state)
    is_all_live = state.verbatim is not None and state.listed is None
    live = state.live if state.listed is None else state.listed
    return {
        key: "live" if is_all_live or key in live else _fate(key, state, copies)
        for key in state.ever
        if key not in copied
    }


def _replayed(state: State, setting: Setting) -> Iterator[Placed]:
    notes = setting.notes
    for key, fate in fates(state).items():
        versions = state.ever[key]
        record, place = versions[0]
        notes.place = place
        if type(key) is not str and state.verbatim is None and not looks_said(record):
            yield Placed(Event(None, "notice", None, fate, "", Opaque(record)), place)  # told by the replay
            continue
        made: Entry | None = None
        if len(versions) > 1:
            record, others = richest(versions)
            yield from _superseded(others, setting)
            if not ask_alike(versions):
                made = normalise_entry(record, fate, setting, versions)
                yield from _superseded(_asked_otherwise(made, versions, others), setting)
        made = normalise_entry(record, fate, setting, versions) if made is None else made
        yield Placed(made, place, may_go=_is_rerecorded(key))


def _asked_otherwise(made: Entry, versions: Sequence[Version], told: Sequence[Version]) -> Iterator[Version]:
    """Yield the versions with arguments of a call that neither the message shows nor a version that is told already."""
    shown = made.parts if isinstance(made, Message) else ()
    known = {id(version) for version in told}
    yield from (one for one in asked_otherwise(shown, [*told, *versions]) if id(one) not in known)


def _is_rerecorded(key: Key) -> bool:
    """A resume writes every tool result once more, under the id of the answer with a suffix; so do we."""
    return type(key) is str and key.endswith((RESPONSE_SUFFIX, RESULTS_SUFFIX))


def _superseded(versions: Iterable[Version], setting: Setting) -> Iterator[Placed]:
    """Yield versions that say something else than the one that is shown; their tokens are counted there."""
    for record, place in versions:
        made = normalise_entry(record, "superseded", setting)
        told = msgspec.structs.replace(made, usage=None) if isinstance(made, Message) else made
        yield Placed(told, place, may_go=True)


def active_timeline(state: State, setting: Setting) -> tuple[Entry, ...]:
    """Return exactly what the CLI's loader returns: every record, in its order, never filtered."""
    placed = []
    for record in active_records(state):
        made = normalise_entry(record, "live", setting)
        if type(record) is dict and record.get("id") == ENVIRONMENT_ID:
            made = msgspec.structs.replace(made, id=ENVIRONMENT_ID)
        placed.append(Placed(made))
    return paired(placed, setting.notes)


def _copies_by_original(state: State) -> dict[str, list[str]]:
    originals: dict[str, list[str]] = defaultdict(list)
    for copy in state.copies:
        original = copy
        while original in state.copies:
            original = state.copies[original]
        originals[original].append(copy)
    return originals


def _fate(key: Key, state: State, copies: dict[str, list[str]]) -> Fate:
    """A message lives as long as it, or a copy of it, is live; else the last of them tells why it went.

    What has no id the loader skips; what only other files hold was left behind by a compression or a clearing.
    """
    names = (key, *copies.get(key, ())) if type(key) is str else (key,)
    live = state.live if state.listed is None else state.listed
    if any(name in live for name in names):
        return "live"
    otherwise: Fate = "superseded" if state.listed is None else "compacted"
    return next((state.gone[name] for name in reversed(names) if name in state.gone), otherwise)


def responses(timeline: Sequence[Entry]) -> tuple[int, int]:
    """Return how many responses of the model are recorded, and how many of them without their tokens.

    None are without where no tokens are recorded at all.
    """
    known: dict[str, tuple[int, bool]] = {}
    for entry, following in zip_longest(timeline, timeline[1:]):
        if type(entry) is Message and entry.model is not None and entry.id is not None:
            is_counted = entry.usage is not None and not entry.usage.estimated
            if is_counted or _is_complete(entry, following):
                before, was_counted = known.get(entry.id, (0, False))
                known[entry.id] = max(before, _held(entry)), was_counted or is_counted
    counted = sum(is_counted for _, is_counted in known.values())
    everything = sum(held for held, _ in known.values())
    return everything, everything - counted if counted else 0


def _is_complete(answer: Message, following: Entry | None) -> bool:
    """Tell whether an answer came to its end: one that was cancelled or failed has a notice behind it, if anything."""
    return bool(answer.parts) and type(following) is Message


def _held(answer: Message) -> int:
    """Return how many responses a message stands for: the calls of another were asked for when those before were done."""
    held, done_at = 1, None
    for call in answer.parts:
        if type(call) is ToolCall and call.at is not None and call.took_ms is not None:
            if done_at is not None and milliseconds(call.at - done_at) > call.took_ms:
                held += 1
            done_at = call.at if done_at is None else max(done_at, call.at)
    return held

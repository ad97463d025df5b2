"""Which messages are only earlier ones, recorded again under new ids.

A cancelled turn (0.44 and later) writes the whole history once more, line by line under new ids, and then makes these
copies the active list; `/compress` does the same with the tail that it keeps. Seen in files of 0.61.0: the copies have
no `model`, no `toolCalls` and no `tokens`, and the first may have `<session_context>` merged into it. Copies are told
by this structure, never by equality alone: a prompt that a person typed twice stays two prompts.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from retold.agents.gemini.raw import ENVIRONMENT_ID, SAID, Record, plain_text, text_parts

Signature = tuple[str, str, tuple[str, ...]]
CONTEXT_OPENS, CONTEXT_ENDS = "<session_context>", "</session_context>"


def copied_from(
    block: Sequence[Record], seen: Mapping[Any, Any], before: Mapping[str, Record]
) -> dict[str, str]:
    """Return copy id to original id, for a `$set.messages` block that replaces the list `before`.

    `seen` has every id that was ever met, in order of first appearance: only an id that is new can be a copy's.
    """
    listed = {record["id"] for record in block}
    pushed = _pushed(listed, seen, before)
    fresh = [record for record in block if record["id"] not in seen or record["id"] in pushed]
    if not fresh:
        return {}
    originals = [
        record
        for record in before.values()
        if record["id"] not in listed and record.get("type") in SAID and record["id"] != ENVIRONMENT_ID
    ]
    return _matched(fresh, originals)


def _pushed(listed: set[str], seen: Mapping[Any, Any], before: Mapping[str, Record]) -> set[str]:
    """Return the ids that were written just before the block, if they are a re-recorded history."""
    run: list[Record] = []
    for message_id in (name for name in reversed(seen) if type(name) is str):
        if message_id not in listed or message_id not in before:
            break
        run.append(before[message_id])
    if any(_is_synthetic(record) or _has_merged_context(record) for record in run):
        return {record["id"] for record in run}
    return set()


def _is_synthetic(record: Record) -> bool:
    """A gemini message without a model was not written from a live response."""
    return record.get("type") == "gemini" and not record.get("model") and not record.get("toolCalls")


def _has_merged_context(record: Record) -> bool:
    if record.get("type") != "user" or record["id"] == ENVIRONMENT_ID:
        return False
    text = plain_text(record.get("content")).lstrip()
    return text.startswith(CONTEXT_OPENS) and not text.rstrip().endswith(CONTEXT_ENDS)


def _matched(fresh: Sequence[Record], originals: Sequence[Record]) -> dict[str, str]:
    """Pair each fresh record with the latest equal original, keeping their order."""
    places: dict[Signature, list[int]] = defaultdict(list)
    for place, record in enumerate(originals):
        places[_signature(record)].append(place)
    copies: dict[str, str] = {}
    limit = len(originals)
    for record in reversed(fresh):
        if record.get("model") or record.get("type") not in SAID:
            continue
        candidates = places.get(_signature(record), [])
        found = bisect_left(candidates, limit) - 1
        if found >= 0:
            limit = candidates[found]
            copies[record["id"]] = originals[limit]["id"]
    return copies


def _signature(record: Record) -> Signature:
    """Return what a copy keeps of its original: who spoke, the words, and the calls or results by id."""
    words = plain_text(record.get("content")).strip()
    if words.startswith(CONTEXT_OPENS):
        words = words.partition(CONTEXT_ENDS)[2].strip()
    return str(record.get("type")), words, tuple(sorted(_call_ids(record)))


def _call_ids(record: Record) -> set[str]:
    ids: set[str] = set()
    for part in text_parts(record.get("content")):
        if type(part) is dict:
            ids |= _ids(part.get("functionCall"), part.get("functionResponse"))
    calls = record.get("toolCalls")
    return ids | _ids(*calls) if type(calls) is list else ids


def _ids(*holders: Any) -> set[str]:
    return {holder["id"] for holder in holders if type(holder) is dict and type(holder.get("id")) is str}

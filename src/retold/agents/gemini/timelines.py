"""A replayed file to its two timelines: everything that was ever said, and what the CLI would load."""

from collections import defaultdict

import msgspec

from retold.agents.gemini.normalise import Setting, entry
from retold.agents.gemini.pairing import paired
from retold.agents.gemini.raw import ENVIRONMENT_ID, RESPONSE_SUFFIX
from retold.agents.gemini.replay import State, active_records
from retold.agents.gemini.versions import richest
from retold.model.entries import Entry, Fate, Message


def full_timeline(state: State, setting: Setting) -> tuple[Entry, ...]:
    """Return everything ever recorded, each once, in order of first appearance."""
    copies = _copies_by_original(state)
    in_list = state.verbatim is not None
    entries: list[Entry] = []
    for key, versions in state.ever.items():
        if key in state.copies:
            continue
        setting.notes.stand_at(versions[0][1], in_list=in_list)
        fate = _fate(key, state, copies) if type(key) is str else _fate_without_id(state)
        record, others = richest(versions) if len(versions) > 1 else (versions[0][0], ())
        entries.extend(
            msgspec.structs.replace(made, fate="superseded", usage=None) if isinstance(made, Message) else made
            for made in (entry(other, "superseded", setting) for other, _ in others)
        )
        entries.append(entry(record, fate, setting, versions))
    return paired(entries, setting.notes, drops=_is_rerecorded)


def active_timeline(state: State, setting: Setting) -> tuple[Entry, ...]:
    """Return exactly what the CLI's loader returns: every record, in its order, never filtered."""
    entries = []
    for record in active_records(state):
        made = entry(record, "live", setting)
        if type(record) is dict and record.get("id") == ENVIRONMENT_ID:
            made = msgspec.structs.replace(made, id=ENVIRONMENT_ID)
        entries.append(made)
    return paired(entries, setting.notes)


def _is_rerecorded(message: Message) -> bool:
    """A resume writes every tool result once more, under the id of the answer with a suffix."""
    return message.id is not None and message.id.endswith(RESPONSE_SUFFIX)


def _copies_by_original(state: State) -> dict[str, list[str]]:
    originals: dict[str, list[str]] = defaultdict(list)
    for copy in state.copies:
        original = copy
        while original in state.copies:
            original = state.copies[original]
        originals[original].append(copy)
    return originals


def _fate(message_id: str, state: State, copies: dict[str, list[str]]) -> Fate:
    """A message lives as long as it, or a copy of it, is live; else the last of them tells why it went."""
    if state.verbatim is not None:
        return "live"
    names = (message_id, *copies.get(message_id, ()))
    if any(name in state.live for name in names):
        return "live"
    return next((state.gone[name] for name in reversed(names) if name in state.gone), "superseded")


def _fate_without_id(state: State) -> Fate:
    """Without an id the loader skips a record, except in a whole-file JSON."""
    return "superseded" if state.verbatim is None else "live"

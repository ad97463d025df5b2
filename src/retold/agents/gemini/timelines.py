"""A replayed file to its two timelines: everything that was ever said, and what the CLI would load."""

from collections import defaultdict

import msgspec

from retold.agents.gemini.normalise import entry, usual_entry
from retold.agents.gemini.pairing import paired
from retold.agents.gemini.raw import ENVIRONMENT_ID, RESPONSE_SUFFIX, Record
from retold.agents.gemini.replay import Key, Plain, State, active_records
from retold.agents.gemini.setting import Setting
from retold.agents.gemini.tasks import with_tasks_told
from retold.agents.gemini.versions import richest
from retold.model.entries import Entry, Fate, Message


def full_timeline(found: State | Plain, setting: Setting) -> tuple[Entry, ...]:
    """Return everything ever recorded, each once, in order of first appearance."""
    if isinstance(found, Plain):
        entries = [usual_entry(record, setting) for record in found.record.messages]
    else:
        entries = _replayed(found, setting)
    return paired(with_tasks_told(entries), setting.notes, drops=_is_rerecorded)


def _replayed(state: State, setting: Setting) -> list[Entry]:
    copied, copies = state.copies, _copies_by_original(state)
    notes = setting.notes
    is_all_live = state.verbatim is not None and state.listed is None
    entries: list[Entry] = []
    for key, versions in state.ever.items():
        if key in copied:
            continue
        record, notes.place = versions[0]
        fate: Fate = "live" if is_all_live else _fate(key, state, copies)
        if len(versions) > 1:
            record, others = richest(versions)
            entries += [_superseded(other, setting) for other, _ in others]
        entries.append(entry(record, fate, setting, versions))
    return entries


def _superseded(record: Record, setting: Setting) -> Entry:
    """Return a version that says something else than the one that is shown; its tokens are counted there."""
    made = entry(record, "superseded", setting)
    return msgspec.structs.replace(made, usage=None) if isinstance(made, Message) else made


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

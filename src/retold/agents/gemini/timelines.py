"""A replayed file to its two timelines: everything that was ever said, and what the CLI would load."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from retold.agents.gemini.loader import active_records
from retold.agents.gemini.normalise import normalise_entry, usual_entry
from retold.agents.gemini.pairing import Placed, paired
from retold.agents.gemini.raw import ENVIRONMENT_ID, RESPONSE_SUFFIX, RESULTS_SUFFIX, looks_said
from retold.agents.gemini.setting import Setting
from retold.agents.gemini.state import Key, Plain, State, Version
from retold.agents.gemini.tasks import with_tasks_told
from retold.agents.gemini.versions import ask_alike, asked_otherwise, richest
from retold.model.session import Entry, Event, Fate, Message, Opaque


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

"""All that a session comes to, gleaned in one pass: however long it is, little of it is held."""

from collections.abc import Iterable

import msgspec

from retold.analysis.changes import Changes, FileChange
from retold.analysis.decisions import Decision, Decisions
from retold.analysis.failures import CallFailure, Failures
from retold.analysis.open_ends import OpenEnd, OpenEnds
from retold.analysis.places import placed
from retold.model.session import Entry, words_of


class Gleaned(msgspec.Struct, frozen=True):
    """What a session comes to."""

    decisions: tuple[Decision, ...] = ()
    failures: tuple[CallFailure, ...] = ()
    open_ends: tuple[OpenEnd, ...] = ()
    changes: tuple[FileChange, ...] = ()
    prompts: int = 0
    """How often a person spoke here; what was said in another session and copied is not counted again."""


def gleaned(entries: Iterable[Entry]) -> Gleaned:
    """Return what a timeline comes to, from its first entry on; it is gone through once."""
    decisions, failures, open_ends, changes = Decisions(), Failures(), OpenEnds(), Changes()
    prompts = 0
    for one in placed(entries):
        prompts += words_of(one.entry) is not None
        decisions.take(one)
        failures.take(one)
        open_ends.take(one)
        changes.take(one)
    failed = failures.found()
    return Gleaned(decisions.found(), failed, open_ends.found(failed), changes.found(), prompts)

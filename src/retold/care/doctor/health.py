"""The archive's own health: whether it is whole, in step, recent, private, and has room."""

import os
import shutil
import stat
import sys
from collections.abc import Iterator

from retold.archive.examination import Fault
from retold.archive.index.files import is_in_step
from retold.archive.queries.lookups import own_files
from retold.archive.store import Store, is_emptied
from retold.care.doctor.finding import REINDEX, SYNC, command
from retold.care.doctor.survey import Survey
from retold.model.problem import Finding
from retold.reading.disk import printable

DAY = 86_400
ROOM = 500_000_000
"""Bytes that should be free: a sync of a long session takes more than the session."""


def health(survey: Survey) -> Iterator[Finding]:
    """Yield what is wrong with retold's own folder."""
    if survey.trouble is not None:
        yield Finding("broken-config", "warning", survey.trouble)
    for label, home in survey.config.homes.items():
        if not os.path.isdir(home):
            fix = command("retold", "sync", "--home", f"{label}={home}")
            yield Finding(
                "missing-home", "warning", f"the home “{label}” is not there: {home}", home, fix=fix
            )
    yield from map(_damage, survey.faults)
    if survey.stopped is not None:
        yield Finding("archive-unusable", "loss", survey.stopped)
    elif survey.record is None:
        why = "the archive is empty" if is_emptied(survey.folder) else "there is no archive yet"
        yield Finding("no-archive", "warning", f"{why}: nothing is kept", fix=SYNC)
    else:
        yield from _record(survey.record, survey)
    yield from _folder(survey.folder)


def _record(record: Store, survey: Survey) -> Iterator[Finding]:
    generation = record.fact("generation")
    # Where nobody may write, SQLite cannot look into an index that was left in the middle of things.
    if os.access(survey.folder, os.W_OK) and not is_in_step(survey.folder, record.id, generation):
        text = "the text index is not in step with the archive: a search may miss something"
        yield Finding("index-behind", "warning", text, fix=REINDEX)
    synced_at = record.fact("synced_at")
    age = survey.now.timestamp() - (synced_at or 0)
    if synced_at is None:
        text = "your own homes were never read: all that is here was imported"
        yield Finding("archive-stale", "note", text, fix=SYNC)
    elif age > DAY:
        days = int(age // DAY)
        text = f"the last sync was {days:,} day{'s' if days > 1 else ''} ago"
        yield Finding("archive-stale", "note", text, fix=SYNC)


def _damage(fault: Fault) -> Finding:
    """Return a fault of the archive with what is still there of the session that it concerns."""
    kept = fault.original
    if kept is None and fault.session is None:
        return Finding("archive-damaged", "loss", fault.text)
    if kept is None:
        text = f"{fault.session}: {fault.text}; its original files are still there"
        return Finding("archive-damaged", "loss", text, None, fault.session, fix=REINDEX)
    others = kept.other_originals
    left = [
        *(["its rows and the words in the index"] if fault.session is not None else []),
        *([f"{others:,} other original file{'' if others == 1 else 's'}"] if others else []),
        *(["the agent's own file"] if kept.is_live else []),
    ]
    told = (
        f"{fault.text} in the original of {printable(kept.path)}; still there: {', '.join(left) or 'nothing'}"
    )
    text = told if fault.session is None else f"{fault.session}: {told}"
    return Finding("archive-damaged", "loss", text, printable(kept.home), fault.session)


def _folder(folder: str) -> Iterator[Finding]:
    # On Windows the mode says nothing of who may read.
    paths = own_files(folder) if sys.platform != "win32" else ()
    open_ones = [path for path in paths if os.stat(path).st_mode & (stat.S_IRWXG | stat.S_IRWXO)]
    if open_ones:
        fix = command("chmod", "-R", "go-rwx", folder)
        yield Finding("open-to-others", "warning", f"others may look into {printable(open_ones[0])}", fix=fix)
    if os.path.isdir(folder) and (free := shutil.disk_usage(folder).free) < ROOM:
        yield Finding(
            "little-space", "warning", f"only {free / 1e6:,.0f} MB are free for the archive in {folder}"
        )

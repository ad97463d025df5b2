"""How much of what lies in the homes is read and archived, and what stood in the way."""

import json
import os
import shlex
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from retold.agents.protocol import Remains, Threat
from retold.archive.database import RetoldError
from retold.archive.examination import Fault, damage
from retold.archive.index.files import is_in_step
from retold.archive.queries.lookups import FAILURES, damages, lone_subagents, own_files, summaries
from retold.archive.store import Store, is_emptied
from retold.export.text.times import day
from retold.maintenance.doctor.survey import Archived, Survey, SurveyedHome
from retold.model.problem import Finding, Problem, Severity
from retold.reading.disk import open_file, printable

CODES = {
    "archive-damaged": "The archive is not what was written into it.",
    "archive-stale": "It is more than a day since the archive was brought up to date.",
    "archive-unusable": "The archive cannot be opened.",
    "broken-config": "`config.toml` in retold's own folder cannot be understood.",
    "broken-settings": "The agent's settings cannot be understood; its usual rules are assumed.",
    "damaged-file": "Something in a session's file could not be read; the rest was.",
    "deletion": "The agent deletes the session soon, by its age or because there are too many.",
    "ghost-twin": "A resume left a file without conversation beside the session, and both go at the next start.",
    "index-behind": "The text index is not in step with the archive.",
    "little-space": "The disk that the archive is on is nearly full.",
    "lone-outputs": "Tool outputs are left of a session that is neither there nor in the archive.",
    "lone-subagent": "A subagent is left of a session that is neither there nor in the archive.",
    "lost": "The agent's files of the session are gone; the archive has it.",
    "missing-home": "A home that `config.toml` names is not there.",
    "no-archive": "There is no archive yet.",
    "nothing-to-resume": "Nothing in the session can be resumed, so that the agent deletes it at its next start.",
    "open-to-others": "Others on this machine may read what retold keeps.",
    "prompts-only": "Only the prompts are left of a session.",
    "refused-file": "A file among the sessions holds no conversation in a known form.",
    "subagent-sibling": "A subagent's file lies beside its session, and both go at the next start.",
    "unarchived": "Files are new or have changed since the last sync.",
    "unknown-records": "Records of a kind that nobody knows yet were kept as they are.",
    "unloadable": "The agent cannot load the file, and deletes it at its next start.",
    "unread-data": "Data in an agent's home that retold cannot read yet.",
    "unread-file": "A sync could not read a file, because of a bug of retold or of damage in the archive.",
    "unreadable": "The operating system does not let retold look into a file or folder.",
}
"""What may be found: permanent, like the codes of problems."""

DAMAGE = ("archive-damaged", "archive-unusable")
"""The archive itself is damaged or cannot be used."""
SYNC = "retold sync"
REINDEX = "retold sync --reindex"
KEEP = "retold keep --install"


def command(*words: str) -> str:
    """Return a command as it can be typed."""
    return shlex.join(words)


def coverage(survey: Survey) -> Iterator[Finding]:
    """Yield what is not archived as it is now, what was refused, and what was damaged or unknown inside."""
    for place in survey.places:
        for problem in place.problems:
            yield Finding("unreadable", "warning", f"{problem.path}: {problem.message}", place.shown)
        for settings in place.agent.limit(place.home).problems if place.is_own else ():
            text = f"{settings.path} cannot be understood: {settings.message}"
            yield Finding("broken-settings", "warning", text, place.shown)
        if survey.record is not None:
            yield from _unarchived(place, survey)
            yield from _refused(place, survey)
    yield from _failed(survey)
    yield from _inside(survey)


def _unarchived(place: SurveyedHome, survey: Survey) -> Iterator[Finding]:
    new = [path for path, answer in place.files.items() if not survey.is_known(path, answer)]
    closed = {path: found for path in new if (found := _trouble(path, place)) is not None}
    for path, found in closed.items():
        yield Finding("unreadable", "warning", f"{printable(path)}: {found.message}", place.shown)
    count = len(new) - len(closed)
    if count:
        are = "file is new or has" if count == 1 else "files are new or have"
        text = f"{count:,} {are} changed since the last sync"
        yield Finding("unarchived", "note", text, place.shown, fix=SYNC, count=count)


def _trouble(path: str, place: SurveyedHome) -> Problem | None:
    file = open_file(Path(path), place.home.disk)
    if isinstance(file, Problem):
        return file
    file.close()
    return None


def _refused(place: SurveyedHome, survey: Survey) -> Iterator[Finding]:
    for path in place.files:
        held = survey.held.get(path)
        told = None if held is None or held.refusal is None else json.loads(held.refusal)
        if told is not None and told["code"] not in FAILURES:
            text = f"{printable(path)}: {told['message']} [{told['code']}]"
            yield Finding(
                "refused-file", "note", text, place.shown, fix=command("retold", "read", printable(path))
            )


def _failed(survey: Survey) -> Iterator[Finding]:
    """Yield the files that a sync could not read because of a bug or of damage in the archive, gone ones too."""
    owners = {path: session.key for session in survey.sessions for path, _ in session.files}
    for path, held in survey.held.items():
        told = None if held.refusal is None else json.loads(held.refusal)
        if told is not None and told["code"] in FAILURES:
            text = f"{printable(path)}: {told['message']} [{told['code']}]"
            yield Finding("unread-file", told["severity"], text, printable(held.home), owners.get(path))


def _inside(survey: Survey) -> Iterator[Finding]:
    if survey.record is None:
        return
    homes = {session.key: printable(session.files[0][1]) for session in survey.sessions if session.files}
    for key, _, code, message, path, line, count in damages(survey.record):
        where = path if line is None else f"{path}:{line}"
        more = f", and {count - 1} more" if count > 1 else ""
        text = f"{where}: {message} [{code}]{more}"
        fix = command("retold", "show", key)
        yield Finding("damaged-file", "note", text, homes.get(key), key, fix=fix)
    unspoken = {session.key for session in survey.sessions if not session.is_spoken}
    for key, _, summary in summaries(survey.record):
        opaque = json.loads(summary).get("coverage", {}).get("opaque", 0)
        if opaque and key not in unspoken:
            text = f"{opaque} record{'s' if opaque > 1 else ''} of an unknown kind, kept as they are"
            fix = command("retold", "show", key, "--json")
            yield Finding("unknown-records", "note", text, homes.get(key), key, fix=fix)


_AT_ONCE = datetime.min.replace(tzinfo=UTC)


class _Doomed(msgspec.Struct, frozen=True):
    """A session that goes, as the first of its files says it."""

    threat: Threat
    name: str
    """What a person knows it by."""
    key: str | None
    is_archived: bool

    @property
    def code(self) -> str:
        """What it is told as."""
        match self.threat.reason:
            case "expired" | "too-many":
                return "deletion"
            case "empty":
                return "ghost-twin"
            case "subagent":
                return "subagent-sibling"
            case other:
                return other


def deletions(survey: Survey) -> Iterator[Finding]:
    """Yield the sessions that go soon, and those that may go whenever the agent starts."""
    owners = survey.of_file()
    for place in survey.places:
        if place.is_own:
            for doomed in _doomed(place, survey, owners):
                if doomed.threat.at is None or doomed.threat.at <= survey.soon:
                    yield _deletion_finding(doomed, place, survey)


def _doomed(place: SurveyedHome, survey: Survey, owners: Mapping[str, Archived]) -> Iterator[_Doomed]:
    """Yield each session once, with what threatens it first; one file that is not archived is enough to lose something."""
    first: dict[str, _Doomed] = {}
    conversations = {
        one.native_id: one for one in survey.sessions if one.agent == place.agent.NAME and one.is_main
    }
    for threat in place.agent.retention(place.home):
        path = str(threat.source.path)
        answer = place.files.get(path)
        is_archived = survey.is_archived(path, answer)
        if (survey.is_known(path, answer) and not is_archived) or _is_nothing(threat, answer):
            continue  # left out because it was told to be, or because there is no conversation in it
        if (known_as := owners.get(path)) is not None and not known_as.is_spoken:
            continue
        # Subagents, and files that are new, are told with their conversation.
        owner = conversations.get(threat.native_id) or known_as
        name = owner.key if owner else threat.native_id or threat.source.shown
        shown = owner.name if owner else name
        found = _Doomed(threat, shown, owner.key if owner else None, is_archived)
        known = first.setdefault(name, found)
        if known is not found:
            nearest = min(known, found, key=lambda one: one.threat.at or _AT_ONCE)
            both = known.is_archived and found.is_archived
            first[name] = msgspec.structs.replace(nearest, is_archived=both)
    yield from first.values()


def _is_nothing(threat: Threat, answer: str | None) -> bool:
    """Tell whether a file says nothing: the loss of a ghost, or of an empty file, is none."""
    return (threat.reason == "empty" and threat.beside is None) or (answer or "0 ").startswith("0 ")


def _deletion_finding(doomed: _Doomed, place: SurveyedHome, survey: Survey) -> Finding:
    threat = doomed.threat
    is_due = threat.at is None or threat.at <= survey.now
    when = "goes at the next start" if is_due or threat.at is None else f"goes on {day(threat.at)}"
    kept = "it is archived" if doomed.is_archived else "it is NOT archived"
    return Finding(
        doomed.code,
        _severity(doomed),
        f"“{doomed.name}” {when}{_WHY.get(doomed.code, '')}; {kept}",
        place.shown,
        doomed.key or threat.native_id,
        threat.at,
        _fix(doomed, place),
    )


_WHY = {
    "ghost-twin": ", with a file without conversation that a resume left beside it",
    "nothing-to-resume": ", because nothing in it can be resumed",
    "subagent-sibling": ", with a subagent's file of the same short id",
    "unloadable": ", because the agent cannot load it",
}


def _severity(doomed: _Doomed) -> Severity:
    if not doomed.is_archived:
        return "loss"
    return "warning" if doomed.code in ("ghost-twin", "subagent-sibling") else "note"


def _fix(doomed: _Doomed, place: SurveyedHome) -> str | None:
    """Return what helps; nothing has to be done about what is archived where the agent itself sees to that."""
    if not doomed.is_archived:
        return SYNC
    if not place.is_kept:
        return KEEP  # which removes ghosts as well
    is_ghosts = doomed.code == "ghost-twin" and doomed.key is not None
    return command("retold", "resume", str(doomed.key), "--run") if is_ghosts else None


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


def lost(survey: Survey) -> Iterator[Finding]:
    """Yield the sessions that the archive has and their agent has not, and what is left of those that nobody has."""
    there = {path for place in survey.places for path in place.files}
    homes = {str(place.home.path) for place in survey.places}
    for session in survey.sessions:
        if session.kind == "prompts-only":
            yield _told(session, "prompts-only", f"only prompts are left of “{session.name}”", "show")
        elif session.is_main and _is_gone(session, there, homes):
            yield _told(
                session, "lost", f"“{session.name}” is gone from the home; the archive has it", "restore"
            )
    if survey.record is not None:
        for key, _, title in lone_subagents(survey.record):
            text = f"a subagent, “{title or key}”, is left of a session that is gone"
            yield Finding("lone-subagent", "note", text, None, key, fix=command("retold", "show", key))


def _is_gone(session: Archived, there: set[str], homes: set[str]) -> bool:
    """Tell whether none of the files is there, in a home that is looked at: one that is away has lost nothing."""
    return any(home in homes for _, home in session.files) and not any(
        path in there for path, _ in session.files
    )


def _told(session: Archived, code: str, text: str, verb: str) -> Finding:
    home = printable(session.files[0][1]) if session.files else None
    return Finding(code, "note", text, home, session.key, fix=command("retold", verb, session.key))


def remains(survey: Survey) -> Iterator[Finding]:
    """Yield prompts and outputs of sessions that are neither there nor in the archive, and data that is not read."""
    known = {session.native_id for session in survey.sessions}
    for place in survey.places:
        for found in place.agent.remains(place.home):
            if found.native_id is None or found.native_id not in known:
                yield _remains_finding(found, place)


def _remains_finding(found: Remains, place: SurveyedHome) -> Finding:
    path = printable(found.path)
    match found.kind:
        case "prompts":
            code, text = "prompts-only", f"{_counted(found.count, 'prompt')} of a lost session in {path}"
        case "outputs":
            code, text = "lone-outputs", f"{_counted(found.count, 'tool output')} of a lost session in {path}"
        case _:
            code, text = "unread-data", f"{path} is not read yet"
    return Finding(code, "note", text, place.shown, found.native_id)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


_ORDER = ("loss", "warning", "note")
_PARTS = (deletions, health, coverage, lost, remains)


def checkup(survey: Survey) -> Iterator[Finding]:
    """Yield every finding, the worst first."""
    found = [finding for part in _PARTS for finding in _of(part, survey)]
    yield from sorted(found, key=lambda one: _ORDER.index(one.severity))


def _of(part: Callable[[Survey], Iterator[Finding]], survey: Survey) -> Iterator[Finding]:
    """Yield what one part finds; where a damaged archive stops it, that is the finding."""
    try:
        yield from part(survey)
    except Exception as error:
        told = str(error) if isinstance(error, RetoldError) else damage(survey.folder)
        if told is None:
            raise
        yield Finding("archive-damaged", "loss", told)

"""The checks of the doctor: each makes findings from a survey."""

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

from retold.agents.protocol import Leftover, Threat
from retold.archive.database import RetoldError
from retold.archive.examination import Fault, find_damage
from retold.archive.queries.lookups import (
    FAILURE_CODES,
    find_archive_files,
    load_lone_subagents,
    load_losses,
    load_readable_summaries,
)
from retold.archive.store import Store, is_archive_empty, is_index_current
from retold.export.text.formatting import format_day
from retold.maintenance.doctor.survey import ArchivedSession, Survey, SurveyedHome
from retold.model.problem import Finding, Problem, Severity
from retold.reading.disk import open_file, printable_path

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
    "unknown-records": "Records of unknown kinds were kept as they are.",
    "unloadable": "The agent cannot load the file, and deletes it at its next start.",
    "unread-data": "Data in an agent's home that retold cannot read yet.",
    "unread-file": "A sync could not read a file, because of a bug of retold or of damage in the archive.",
    "unreadable": "The operating system does not let retold look into a file or folder.",
}
"""The codes of findings, permanent like those of problems, with their meanings."""

DAMAGE = ("archive-damaged", "archive-unusable")
"""The codes of an archive that is damaged or cannot be used."""
SYNC = "retold sync"
REINDEX = "retold sync --reindex"
KEEP = "retold keep --install"


def format_command(*words: str) -> str:
    """Return a command quoted for a shell."""
    return shlex.join(words)


def check_coverage(survey: Survey) -> Iterator[Finding]:
    """Yield files that are not archived as they are now, refused files, and damaged or unknown contents."""
    for home in survey.homes:
        for problem in home.problems:
            yield Finding("unreadable", "warning", f"{problem.path}: {problem.message}", home.display_path)
        for settings in home.agent.read_retention_limit(home.agent_home).problems if home.is_own else ():
            text = f"{settings.path} cannot be understood: {settings.message}"
            yield Finding("broken-settings", "warning", text, home.display_path)
        if survey.record is not None:
            yield from _unarchived_files(home, survey)
            yield from _refused_files(home, survey)
    yield from _unread_files(survey)
    yield from _contents(survey)


def _unarchived_files(home: SurveyedHome, survey: Survey) -> Iterator[Finding]:
    new = [path for path, fingerprint in home.files.items() if not survey.is_known(path, fingerprint)]
    unreadable = {path: problem for path in new if (problem := _open_problem(path, home)) is not None}
    for path, problem in unreadable.items():
        text = f"{printable_path(path)}: {problem.message}"
        yield Finding("unreadable", "warning", text, home.display_path)
    count = len(new) - len(unreadable)
    if count:
        are = "file is new or has" if count == 1 else "files are new or have"
        text = f"{count:,} {are} changed since the last sync"
        yield Finding("unarchived", "note", text, home.display_path, fix=SYNC, count=count)


def _open_problem(path: str, home: SurveyedHome) -> Problem | None:
    file = open_file(Path(path), home.agent_home.disk)
    if isinstance(file, Problem):
        return file
    file.close()
    return None


def _refused_files(home: SurveyedHome, survey: Survey) -> Iterator[Finding]:
    for path in home.files:
        file = survey.files.get(path)
        problem = None if file is None or file.refusal is None else json.loads(file.refusal)
        if problem is not None and problem["code"] not in (*FAILURE_CODES, "nothing-said"):
            text = f"{printable_path(path)}: {problem['message']} [{problem['code']}]"
            fix = format_command("retold", "read", printable_path(path))
            yield Finding("refused-file", "note", text, home.display_path, fix=fix)


def _unread_files(survey: Survey) -> Iterator[Finding]:
    """Yield the files, deleted ones too, that a sync could not read because of a bug or of damage in the archive."""
    owners = {path: session.key for session in survey.sessions for path, _ in session.files}
    for path, file in survey.files.items():
        problem = None if file.refusal is None else json.loads(file.refusal)
        if problem is not None and problem["code"] in FAILURE_CODES:
            text = f"{printable_path(path)}: {problem['message']} [{problem['code']}]"
            shown = printable_path(file.home)
            yield Finding("unread-file", problem["severity"], text, shown, owners.get(path))


def _contents(survey: Survey) -> Iterator[Finding]:
    if survey.record is None:
        return
    homes = {session.key: session.home for session in survey.sessions}
    for key, _, code, message, path, line, count in load_losses(survey.record):
        where = path if line is None else f"{path}:{line}"
        more = f", and {count - 1} more" if count > 1 else ""
        text = f"{where}: {message} [{code}]{more}"
        fix = format_command("retold", "show", key)
        yield Finding("damaged-file", "note", text, homes.get(key), key, fix=fix)
    unspoken = {session.key for session in survey.sessions if not session.is_spoken}
    for key, _, summary in load_readable_summaries(survey.record):
        opaque = json.loads(summary).get("coverage", {}).get("opaque", 0)
        if opaque and key not in unspoken:
            text = f"{opaque} record{'s' if opaque > 1 else ''} of an unknown kind, kept as they are"
            fix = format_command("retold", "show", key, "--json")
            yield Finding("unknown-records", "note", text, homes.get(key), key, fix=fix)


_AT_ONCE = datetime.min.replace(tzinfo=UTC)


class _EndangeredSession(msgspec.Struct, frozen=True):
    """A session that its agent is going to delete, with the threat to the first of its files."""

    threat: Threat
    name: str
    """Its title, key or id."""
    key: str | None
    is_archived: bool

    @property
    def code(self) -> str:
        """The code of its finding."""
        match self.threat.reason:
            case "expired" | "too-many":
                return "deletion"
            case "empty":
                return "ghost-twin"
            case "subagent":
                return "subagent-sibling"
            case other:
                return other


def check_deletions(survey: Survey) -> Iterator[Finding]:
    """Yield the sessions that their agents delete soon, or at the next start."""
    owners = survey.sessions_by_path()
    for home in survey.homes:
        if home.is_own:
            for session in _endangered_sessions(home, survey, owners):
                if session.threat.at is None or session.threat.at <= survey.soon:
                    yield _deletion_finding(session, home, survey)


def _endangered_sessions(
    home: SurveyedHome, survey: Survey, owners: Mapping[str, ArchivedSession]
) -> Iterator[_EndangeredSession]:
    """Yield each session once, with its nearest threat; it counts as archived only if all of its threatened files are."""
    first: dict[str, _EndangeredSession] = {}
    conversations = {
        one.native_id: one for one in survey.sessions if one.agent == home.agent.NAME and one.is_main
    }
    for threat in home.agent.find_threats(home.agent_home):
        path = str(threat.source.path)
        fingerprint = home.files.get(path)
        is_archived = survey.is_archived(path, fingerprint)
        if (survey.is_known(path, fingerprint) and not is_archived) or _has_no_content(threat, fingerprint):
            continue  # excluded from the archive, or without a conversation
        if (archived := owners.get(path)) is not None and not archived.is_spoken:
            continue
        # Subagents and new files belong to the finding of their conversation.
        owner = conversations.get(threat.native_id) or archived
        name = owner.key if owner else threat.native_id or threat.source.display_path
        title = owner.name if owner else name
        found = _EndangeredSession(threat, title, owner.key if owner else None, is_archived)
        known = first.setdefault(name, found)
        if known is not found:
            nearest = min(known, found, key=lambda one: one.threat.at or _AT_ONCE)
            both = known.is_archived and found.is_archived
            first[name] = msgspec.structs.replace(nearest, is_archived=both)
    yield from first.values()


def _has_no_content(threat: Threat, fingerprint: str | None) -> bool:
    """Return whether a file holds nothing that could be lost: a ghost, or an empty file."""
    return (threat.reason == "empty" and threat.cause is None) or (fingerprint or "0 ").startswith("0 ")


def _deletion_finding(session: _EndangeredSession, home: SurveyedHome, survey: Survey) -> Finding:
    threat = session.threat
    is_due = threat.at is None or threat.at <= survey.now
    when = "goes at the next start" if is_due or threat.at is None else f"goes on {format_day(threat.at)}"
    kept = "it is archived" if session.is_archived else "it is NOT archived"
    return Finding(
        session.code,
        _severity(session),
        f"“{session.name}” {when}{_WHY.get(session.code, '')}; {kept}",
        home.display_path,
        session.key or threat.native_id,
        threat.at,
        _fix(session, home),
    )


_WHY = {
    "ghost-twin": ", with a file without conversation that a resume left beside it",
    "nothing-to-resume": ", because nothing in it can be resumed",
    "subagent-sibling": ", with a subagent's file of the same short id",
    "unloadable": ", because the agent cannot load it",
}


def _severity(session: _EndangeredSession) -> Severity:
    if not session.is_archived:
        return "loss"
    return "warning" if session.code in ("ghost-twin", "subagent-sibling") else "note"


def _fix(session: _EndangeredSession, home: SurveyedHome) -> str | None:
    """Return the command that helps; None for an archived session whose agent has the hook."""
    if not session.is_archived:
        return SYNC
    if not home.has_hook:
        return KEEP  # it removes ghosts as well
    is_ghosts = session.code == "ghost-twin" and session.key is not None
    return format_command("retold", "resume", str(session.key), "--run") if is_ghosts else None


DAY = 86_400
LEAST_SPACE = 500_000_000
"""Bytes that should be free: the sync of a long session takes more than its size."""


def check_health(survey: Survey) -> Iterator[Finding]:
    """Yield faults of the configuration, the archive and its folder."""
    if survey.config_error is not None:
        yield Finding("broken-config", "warning", survey.config_error)
    for label, home in survey.config.homes.items():
        if not os.path.isdir(home):
            fix = format_command("retold", "sync", "--home", f"{label}={home}")
            yield Finding(
                "missing-home", "warning", f"the home “{label}” is not there: {home}", home, fix=fix
            )
    yield from map(_damage_finding, survey.faults)
    if survey.archive_error is not None:
        yield Finding("archive-unusable", "loss", survey.archive_error)
    elif survey.record is None:
        why = "the archive is empty" if is_archive_empty(survey.folder) else "there is no archive yet"
        yield Finding("no-archive", "warning", f"{why}: nothing is kept", fix=SYNC)
    else:
        yield from _archive_state(survey.record, survey)
    yield from _folder_state(survey.folder)


def _archive_state(record: Store, survey: Survey) -> Iterator[Finding]:
    generation = record.fact("generation")
    # In a read-only folder SQLite cannot open an index that was not closed properly.
    if os.access(survey.folder, os.W_OK) and not is_index_current(survey.folder, record.id, generation):
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


def _damage_finding(fault: Fault) -> Finding:
    """Return the finding for a fault of the archive, with the parts of its session that still exist."""
    original = fault.original
    if original is None and fault.session is None:
        return Finding("archive-damaged", "loss", fault.text)
    if original is None:
        text = f"{fault.session}: {fault.text}; its original files are still there"
        return Finding("archive-damaged", "loss", text, None, fault.session, fix=REINDEX)
    others = original.other_originals
    left = [
        *(["its rows and the words in the index"] if fault.session is not None else []),
        *([f"{others:,} other original file{'' if others == 1 else 's'}"] if others else []),
        *(["the agent's own file"] if original.is_live else []),
    ]
    detail = f"{fault.text} in the original of {printable_path(original.path)}; still there: {', '.join(left) or 'nothing'}"
    text = detail if fault.session is None else f"{fault.session}: {detail}"
    return Finding("archive-damaged", "loss", text, printable_path(original.home), fault.session)


def _folder_state(folder: str) -> Iterator[Finding]:
    # On Windows the mode does not say who may read.
    paths = find_archive_files(folder) if sys.platform != "win32" else ()
    open_ones = [path for path in paths if os.stat(path).st_mode & (stat.S_IRWXG | stat.S_IRWXO)]
    if open_ones:
        fix = format_command("chmod", "-R", "go-rwx", folder)
        text = f"others may look into {printable_path(open_ones[0])}"
        yield Finding("open-to-others", "warning", text, fix=fix)
    if os.path.isdir(folder) and (free := shutil.disk_usage(folder).free) < LEAST_SPACE:
        text = f"only {free / 1e6:,.0f} MB are free for the archive in {folder}"
        yield Finding("little-space", "warning", text)


def check_lost(survey: Survey) -> Iterator[Finding]:
    """Yield the sessions that only the archive has, and those of which only prompts or a subagent are left."""
    there = {path for home in survey.homes for path in home.files}
    homes = {str(home.agent_home.path) for home in survey.homes}
    for session in survey.sessions:
        if session.kind == "prompts-only":
            text = f"only prompts are left of “{session.name}”"
            yield _session_finding(session, "prompts-only", text, "show")
        elif session.is_main and _is_gone(session, there, homes):
            text = f"“{session.name}” is gone from the home; the archive has it"
            yield _session_finding(session, "lost", text, "restore")
    if survey.record is not None:
        for key, _, title in load_lone_subagents(survey.record):
            text = f"a subagent, “{title or key}”, is left of a session that is gone"
            yield Finding("lone-subagent", "note", text, None, key, fix=format_command("retold", "show", key))


def _is_gone(session: ArchivedSession, there: set[str], homes: set[str]) -> bool:
    """Return whether all files are gone from an existing home: a home that is not mounted has lost nothing."""
    is_any_there = any(path in there for path, _ in session.files)
    return not is_any_there and any(home in homes for _, home in session.files)


def _session_finding(session: ArchivedSession, code: str, text: str, verb: str) -> Finding:
    fix = format_command("retold", verb, session.key)
    return Finding(code, "note", text, session.home, session.key, fix=fix)


def check_remains(survey: Survey) -> Iterator[Finding]:
    """Yield prompts and outputs of sessions that are in no home and not in the archive, and data that is not read."""
    known = {session.native_id for session in survey.sessions}
    for home in survey.homes:
        for found in home.agent.find_leftovers(home.agent_home):
            if found.native_id is None or found.native_id not in known:
                yield _remains_finding(found, home)


def _remains_finding(found: Leftover, home: SurveyedHome) -> Finding:
    path, end = printable_path(found.path), "" if found.count == 1 else "s"
    match found.kind:
        case "prompts":
            code, text = "prompts-only", f"{found.count} prompt{end} of a lost session in {path}"
        case "outputs":
            code, text = "lone-outputs", f"{found.count} tool output{end} of a lost session in {path}"
        case _:
            code, text = "unread-data", f"{path} is not read yet"
    return Finding(code, "note", text, home.display_path, found.native_id)


_ORDER = ("loss", "warning", "note")
_CHECKS = (check_deletions, check_health, check_coverage, check_lost, check_remains)


def run_checks(survey: Survey) -> Iterator[Finding]:
    """Yield every finding, the worst first."""
    found = [finding for check in _CHECKS for finding in _guard(check, survey)]
    yield from sorted(found, key=lambda one: _ORDER.index(one.severity))


def _guard(check: Callable[[Survey], Iterator[Finding]], survey: Survey) -> Iterator[Finding]:
    """Yield the findings of one check; if a damaged archive stops it, a finding about that."""
    try:
        yield from check(survey)
    except Exception as error:
        damage = str(error) if isinstance(error, RetoldError) else find_damage(survey.folder)
        if damage is None:
            raise
        yield Finding("archive-damaged", "loss", damage)

"""How much of what lies in the homes is read and archived, and what stood in the way."""

import json
from collections.abc import Iterator
from pathlib import Path

from retold.archive.queries.lookups import FAILURES, damages, summaries
from retold.care.doctor.finding import SYNC, command
from retold.care.doctor.survey import Survey, SurveyedHome
from retold.model.problem import Finding, Problem
from retold.reading.disk import open_file, printable


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

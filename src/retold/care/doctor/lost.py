"""What is gone from the agents' homes, and what is left of it."""

from collections.abc import Iterator

from retold.archive.queries.lookups import lone_subagents
from retold.care.doctor.finding import command
from retold.care.doctor.survey import Archived, Survey
from retold.model.problem import Finding
from retold.reading.disk import printable


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

"""What lies in the homes of which the archive knows nothing: left of lost sessions, or not understood yet."""

from collections.abc import Iterator

from retold.agents.protocol import Remains
from retold.care.doctor.survey import Survey, SurveyedHome
from retold.model.problem import Finding
from retold.reading.disk import printable


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

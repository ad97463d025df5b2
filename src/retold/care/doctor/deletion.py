"""What the agents delete by themselves, and which of it the archive has."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import msgspec

from retold.agents.protocol import Threat
from retold.care.doctor.finding import KEEP, SYNC, command
from retold.care.doctor.survey import Archived, Survey, SurveyedHome
from retold.export.text.times import day
from retold.model.problem import Finding, Severity

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

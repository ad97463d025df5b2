"""All findings, in the order in which they matter."""

from collections.abc import Callable, Iterator

from retold.archive.database import RetoldError
from retold.archive.examination import damage
from retold.care.doctor.coverage import coverage
from retold.care.doctor.deletion import deletions
from retold.care.doctor.health import health
from retold.care.doctor.lost import lost
from retold.care.doctor.remains import remains
from retold.care.doctor.survey import Survey
from retold.model.problem import Finding

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

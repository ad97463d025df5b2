"""What is at risk, what is lost, and the buttons that mend it."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from retold.archive.store import Store
from retold.config import retold_home
from retold.export.text.findings import THREATS, Gathered
from retold.maintenance.doctor.checks import KEEP
from retold.model.problem import Finding
from retold.web.answer import Answer, PageRequest, PageRoute, Redirect, TemplatePage
from retold.web.checkups import Checked, Checkups
from retold.web.syncing import PageSyncOutcome, sync

MOST = 200
"""Sessions of a kind that are shown one by one."""
SHOWN = {"": "Everything", "lost": "Lost sessions", "soon": "Going soon"}
"""What may be looked at, in words."""


class HealthHome(msgspec.Struct, frozen=True):
    """What is told of a home; of everything that is about no home, if it has no name."""

    name: str | None
    standing: Any
    gathered: Sequence[Gathered]


class HealthPage:
    """What is remembered from one request to the next."""

    def __init__(self) -> None:
        self.checkups = Checkups()
        self.outcome: PageSyncOutcome | None = None


@cache
def desk(folder: str) -> HealthPage:
    """Return the desk of an archive."""
    del folder  # each has its own
    return HealthPage()


def health(asked: PageRequest, _: Store) -> Answer:
    """Answer with all that was found, or with one sort of it."""
    own = desk(retold_home(os.environ))
    if asked.get("again"):
        own.checkups.latest(os.environ, is_new=True)
        return Redirect("/health", {"show": _show(asked)})
    checked = own.checkups.latest(os.environ)
    return TemplatePage(
        "health.html", _values(checked, _show(asked), own.outcome if asked.get("synced") else None)
    )


def archive_now(_asked: PageRequest, _: Store) -> Answer:
    """Bring the archive up to date; the page tells what that came to."""
    own = desk(retold_home(os.environ))
    own.outcome = sync(os.environ)
    own.checkups.forget()
    return Redirect("/health", {"synced": "1"})


def _show(asked: PageRequest) -> str:
    show = asked.get("show")
    return show if show in SHOWN else ""


def _values(checked: Checked, show: str, outcome: PageSyncOutcome | None) -> Mapping[str, Any]:
    findings = [finding for same in checked.findings for finding in same.findings]
    sorts = {name: sum(_is_meant(one, name) for one in findings) for name in SHOWN}
    return {
        "checked": checked,
        "homes": _homes(checked, show),
        "lost": sorts["lost"],
        "unarchived": sum(one.code in THREATS and one.severity == "loss" for one in findings),
        "risks": [one for one in checked.findings if one.findings[0].is_risk],
        "files": sum(one.files for one in checked.standings),
        "known": sum(one.known for one in checked.standings),
        "sorts": [(name, words, sorts[name]) for name, words in SHOWN.items()],
        "show": show,
        "outcome": outcome,
        "keep": KEEP,
        "most": MOST,
    }


def _is_meant(finding: Finding, show: str) -> bool:
    return show == "" or (finding.code == "lost" if show == "lost" else finding.code in THREATS)


def _homes(checked: Checked, show: str) -> list[HealthHome]:
    """Return the homes, first those of which the worst was found; then the others, that are well."""
    standing = {one.home: one for one in checked.standings}
    found: dict[str | None, list[Gathered]] = {}
    for same in checked.findings:
        if _is_meant(same.findings[0], show):
            found.setdefault(same.home, []).append(same)
    homes = [HealthHome(name, standing.get(name or ""), gathered) for name, gathered in found.items()]
    well = [] if show else [HealthHome(name, one, ()) for name, one in standing.items() if name not in found]
    order = ("loss", "warning", "note")
    return sorted(homes, key=lambda home: order.index(home.gathered[0].severity)) + well


PAGES = (PageRoute("/health", health), PageRoute("/health/sync", archive_now, is_post=True))

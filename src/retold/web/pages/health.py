"""What is at risk, what is lost, and the buttons that mend it."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from retold.archive.database import RetoldError
from retold.archive.store import Store
from retold.config import retold_home
from retold.export.text.findings import THREATS, Gathered
from retold.maintenance.doctor.checks import KEEP
from retold.maintenance.restore import RestorePlan, Wish, command_line, planned, write
from retold.model.problem import Finding
from retold.search.listing import named
from retold.web.background import Checked, Checkups, PageSyncOutcome, sync
from retold.web.page import Answer, NotFound, PageRequest, PageRoute, Redirect, TemplatePage

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


def restore(asked: PageRequest, record: Store) -> Answer:
    """Answer with what would be written, and what the agent does then; or with why nothing can be."""
    key = asked.get("key")
    title = _title(record, key)
    try:
        plan = planned(record, key, Wish(), os.environ)
    except (RetoldError, OSError) as error:
        return _refused(key, title, error)
    return _shown(key, title, plan, is_done=bool(asked.get("done")))


def written_back(asked: PageRequest, record: Store) -> Answer:
    """Write it, as the command does; the archive learns of it at once, so that nobody calls it lost any more."""
    key = asked.form.get("key", "")
    title = _title(record, key)
    try:
        write(planned(record, key, Wish(), os.environ))
    except (RetoldError, OSError) as error:
        return _refused(key, title, error)
    sync(os.environ)
    desk(retold_home(os.environ)).checkups.forget()
    return Redirect("/restore", {"key": key, "done": "1"})


def _title(record: Store, key: str) -> str:
    found = dict(named(record, key)) if key else {}
    if key not in found:
        raise NotFound("The archive has no such session.")
    return found[key] or key


def _shown(key: str, title: str, plan: RestorePlan, *, is_done: bool) -> Answer:
    values = {
        "key": key,
        "title": title,
        "agent": plan.agent.NAME,
        "paths": [str(addition.path) for addition in plan.additions],
        "is_full": plan.restored.view == "full",
        "command": command_line(plan),
        "is_done": is_done and not plan.additions,
        "trouble": "",
    }
    return TemplatePage("restore.html", values)


def _refused(key: str, title: str, error: Exception) -> Answer:
    return TemplatePage("restore.html", {"key": key, "title": title, "trouble": str(error)}, 409)


RESTORE_PAGES = (PageRoute("/restore", restore), PageRoute("/restore", written_back, is_post=True))

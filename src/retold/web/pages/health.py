"""The page of findings, with the button that syncs, and the page that restores a session."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from retold.archive.database import RetoldError
from retold.archive.store import Store
from retold.config import retold_home
from retold.export.text.findings import THREATS, FindingGroup
from retold.maintenance.doctor.checks import KEEP
from retold.maintenance.restore import RestoreOptions, RestorePlan, format_command, plan_restore, write_plan
from retold.model.problem import Finding
from retold.search.listing import resolve_ids
from retold.web.background import HealthCache, HealthState, PageSyncOutcome, run_sync_command
from retold.web.templating import Answer, NotFound, PageRequest, PageRoute, Redirect, TemplatePage

MOST = 200
"""Findings of a kind that are listed one by one."""
SHOWN = {"": "Everything", "lost": "Lost sessions", "soon": "Going soon"}
"""Selections of findings."""


class HealthHome(msgspec.Struct, frozen=True):
    """A home with its status and findings; without a name, findings that belong to no home."""

    name: str | None
    standing: Any
    gathered: Sequence[FindingGroup]


class HealthPage:
    """The state that is kept between requests."""

    def __init__(self) -> None:
        self.checkups = HealthCache()
        self.outcome: PageSyncOutcome | None = None


@cache
def health_page(folder: str) -> HealthPage:
    """Return the state of an archive's page."""
    del folder  # the key of the cache
    return HealthPage()


def health(request: PageRequest, _: Store) -> Answer:
    """Answer with the findings, all or a selection."""
    own = health_page(retold_home(os.environ))
    if request.get("again"):
        own.checkups.latest(os.environ, is_new=True)
        return Redirect("/health", {"show": _show(request)})
    checked = own.checkups.latest(os.environ)
    return TemplatePage(
        "health.html", _values(checked, _show(request), own.outcome if request.get("synced") else None)
    )


def sync_now(_request: PageRequest, _: Store) -> Answer:
    """Sync; the page then shows the outcome."""
    own = health_page(retold_home(os.environ))
    own.outcome = run_sync_command(os.environ)
    own.checkups.forget()
    return Redirect("/health", {"synced": "1"})


def _show(request: PageRequest) -> str:
    show = request.get("show")
    return show if show in SHOWN else ""


def _values(checked: HealthState, show: str, outcome: PageSyncOutcome | None) -> Mapping[str, Any]:
    findings = [finding for group in checked.findings for finding in group.findings]
    sorts = {name: sum(_is_selected(one, name) for one in findings) for name in SHOWN}
    return {
        "checked": checked,
        "homes": _homes(checked, show),
        "lost": sorts["lost"],
        "unarchived": sum(one.code in THREATS and one.severity == "loss" for one in findings),
        "risks": [one for one in checked.findings if one.findings[0].is_risk],
        "files": sum(one.files for one in checked.homes),
        "known": sum(one.known for one in checked.homes),
        "sorts": [(name, words, sorts[name]) for name, words in SHOWN.items()],
        "show": show,
        "outcome": outcome,
        "keep": KEEP,
        "most": MOST,
    }


def _is_selected(finding: Finding, show: str) -> bool:
    return show == "" or (finding.code == "lost" if show == "lost" else finding.code in THREATS)


def _homes(checked: HealthState, show: str) -> list[HealthHome]:
    """Return the homes with findings, the worst first, and then those without."""
    standing = {one.home: one for one in checked.homes}
    found: dict[str | None, list[FindingGroup]] = {}
    for group in checked.findings:
        if _is_selected(group.findings[0], show):
            found.setdefault(group.home, []).append(group)
    homes = [HealthHome(name, standing.get(name or ""), gathered) for name, gathered in found.items()]
    well = [] if show else [HealthHome(name, one, ()) for name, one in standing.items() if name not in found]
    order = ("loss", "warning", "note")
    return sorted(homes, key=lambda home: order.index(home.gathered[0].severity)) + well


def restore(request: PageRequest, store: Store) -> Answer:
    """Answer with the files that a restore would write, or with why it cannot."""
    key = request.get("key")
    title = _title(store, key)
    try:
        plan = plan_restore(store, key, RestoreOptions(), os.environ)
    except (RetoldError, OSError) as error:
        return _refused(key, title, error)
    return _shown(key, title, plan, is_done=bool(request.get("done")))


def write_restored(request: PageRequest, store: Store) -> Answer:
    """Restore a session, and sync, so that the archive does not call it lost any longer."""
    key = request.form.get("key", "")
    title = _title(store, key)
    try:
        write_plan(plan_restore(store, key, RestoreOptions(), os.environ))
    except (RetoldError, OSError) as error:
        return _refused(key, title, error)
    run_sync_command(os.environ)
    health_page(retold_home(os.environ)).checkups.forget()
    return Redirect("/restore", {"key": key, "done": "1"})


def _title(store: Store, key: str) -> str:
    found = dict(resolve_ids(store, key)) if key else {}
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
        "command": format_command(plan),
        "is_done": is_done and not plan.additions,
        "trouble": "",
    }
    return TemplatePage("restore.html", values)


def _refused(key: str, title: str, error: Exception) -> Answer:
    return TemplatePage("restore.html", {"key": key, "title": title, "trouble": str(error)}, 409)


PAGES = (
    PageRoute("/health", health),
    PageRoute("/health/sync", sync_now, is_post=True),
    PageRoute("/restore", restore),
    PageRoute("/restore", write_restored, is_post=True),
)

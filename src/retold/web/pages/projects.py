"""Projects: all of them side by side, or one by itself."""

from __future__ import annotations

import msgspec

from retold.archive.store import Store
from retold.export.svg import length, shares, sparkline
from retold.export.text.numbers import span
from retold.export.text.table import project_names
from retold.reports.dashboards import (
    WEEKS,
    Portrait,
    calls_by,
    changed,
    failing,
    failures,
    newest,
    over_time,
    portraits,
    total,
    used,
    with_ends,
)
from retold.reports.selection import Period, ReportFilters, is_called, parts, unit
from retold.reports.stats import brief_lines
from retold.search.dates import moment_of
from retold.search.listing import places
from retold.search.report_query import UNKNOWN, ReportQuery
from retold.web import charts
from retold.web.page import Answer, NotFound, PageRequest, PageRoute, TemplatePage
from retold.web.url_state import PERIODS, ReportUrl, chosen_in

_SESSIONS, _FILES, _TOOLS = 12, 12, 12
EVIDENCE = {
    "recorded": "the agent wrote the folder down",
    "registry": "the agent's own list of projects names the folder",
    "hash": "the agent wrote down only a hash, and this folder has it",
    "guessed": "a guess, from the paths that were named in its sessions",
    "none": "not known: the agent wrote down only a hash, or nothing",
}


def projects(asked: PageRequest, record: Store) -> Answer:
    """Answer with all projects, or with one."""
    return _project(asked, record) if asked.get("root") else _projects(asked, record)


def _projects(asked: PageRequest, record: Store) -> Answer:
    chosen = chosen_in(asked, record, "all")
    found = portraits(chosen.question(record), places(record), chosen.today)
    names = project_names(one.key for one in found)
    dearest = max((one.line.measured.picos or 0 for one in found), default=0)
    rows = [
        {
            "one": one,
            "name": names[one.key],
            "last_at": moment_of(one.place.last_at),
            "bar": length(one.line.measured.picos, dearest),
            "agents": shares(one.agents),
            "weeks": _weeks(one),
        }
        for one in found
    ]
    return TemplatePage("projects.html", {"rows": rows, "chosen": chosen})


def _weeks(one: Portrait) -> object:
    busy = sum(1 for seconds in one.weeks if seconds)
    told = f"{span(sum(one.weeks))} of work in {busy} of the last {WEEKS} weeks"
    return sparkline(one.weeks, told)


def _project(asked: PageRequest, record: Store) -> Answer:
    everything = chosen_in(asked, record, "all")
    asked_for = asked.get("root")
    key = everything.choices.projects.get(asked_for, asked_for)
    place = next((one for one in places(record) if is_called(one, key)), None)
    if place is None:
        raise NotFound("There is no such project.")
    chosen = msgspec.structs.replace(everything, narrowing=ReportFilters(project=key or UNKNOWN))
    question = chosen.question(record)
    by, parts = over_time(question, Period(name="all"))
    (portrait,) = portraits(question, [place], chosen.today)
    values = {
        "chosen": chosen,
        "place": place,
        "key": portrait.key,
        "portrait": portrait,
        "weeks": _weeks(portrait),
        "evidence": EVIDENCE[place.evidence],
        "total": total(question),
        "days": charts.days(
            brief_lines(chosen.question(record, charts.year_of(chosen)), "day"), chosen, "cost"
        ),
        "by": by,
        "time": charts.over_time(parts, by, chosen),
        "models": charts.ranked(brief_lines(question, "model"), "model", chosen),
        "sessions": newest(question, _SESSIONS),
        "files": changed(question, "", _FILES),
        "tools": used(question)[:_TOOLS],
    }
    return TemplatePage("project.html", values)


PAGES = (PageRoute("/projects", projects),)


_FAILING, _FAILURES = 10, 50


def tools(asked: PageRequest, record: Store) -> Answer:
    """Answer with all tools, or with one."""
    chosen = chosen_in(asked, record, "30d")
    question = chosen.question(record)
    found = used(question)
    name = chosen.narrowing.tool
    if name and not found and not used(chosen.question(record, chosen.ever)):
        raise NotFound(f"No tool is called {name}.")
    most = max((one.tool.calls for one in found), default=0)
    values = {
        "chosen": chosen,
        "periods": PERIODS,
        "rows": [(one, length(one.tool.calls, most), shares(one.agents)) for one in found],
        "calls": sum(one.tool.calls for one in found),
        "errors": sum(one.tool.errors or 0 for one in found),
        "retries": sum(one.tool.retries or 0 for one in found),
        "failing": failing(question, _FAILING),
        "failures": failures(question, name, _FAILURES),
        **_over_time(question, chosen),
    }
    return TemplatePage("tools.html", values)


def _over_time(question: ReportQuery, chosen: ReportUrl) -> dict[str, object]:
    period = with_ends(question, chosen.period)
    by = unit(period)
    found = calls_by(question, by)
    told = [(of, part, *found.get(of, (0, 0))) for of, part in parts(period, by)]
    return {"by": by, "time": charts.failures(told, by, chosen)}


TOOL_PAGES = (PageRoute("/tools", tools),)

"""The pages of projects and of tools: all of them in a table, or one by itself."""

from __future__ import annotations

import msgspec

from retold.archive.store import Store
from retold.export.svg import draw_length, draw_shares, draw_sparkline
from retold.export.text.amounts import format_duration
from retold.export.text.formatting import project_names
from retold.projects.matching import UNKNOWN
from retold.reports.dashboards import (
    WEEKS,
    ProjectReport,
    bounded_period,
    report_calls_by,
    report_changed_files,
    report_failed_calls,
    report_failing_sessions,
    report_newest_sessions,
    report_over_time,
    report_projects,
    report_total,
    report_used_tools,
)
from retold.reports.selection import Period, ReportFilters, choose_unit, has_key, split_period
from retold.reports.stats import ReportQuery, report_brief_lines
from retold.search.dates import to_datetime
from retold.search.listing import list_projects
from retold.web import charts
from retold.web.templating import Answer, NotFound, PageRequest, PageRoute, TemplatePage
from retold.web.url_state import PERIODS, ReportUrl, parse_report_url

_SESSIONS, _FILES, _TOOLS = 12, 12, 12
EVIDENCE = {
    "recorded": "the agent wrote the folder down",
    "registry": "the agent's own list of projects names the folder",
    "hash": "the agent wrote down only a hash, and this folder has it",
    "guessed": "a guess, from the paths that were named in its sessions",
    "none": "not known: the agent wrote down only a hash, or nothing",
}


def projects(request: PageRequest, store: Store) -> Answer:
    """Answer with all projects, or with one."""
    return _project(request, store) if request.get("root") else _projects(request, store)


def _projects(request: PageRequest, store: Store) -> Answer:
    url = parse_report_url(request, store, "all")
    found = report_projects(url.query(store), list_projects(store), url.today)
    names = project_names(one.key for one in found)
    dearest = max((one.line.measured.picos or 0 for one in found), default=0)
    rows = [
        {
            "one": one,
            "name": names[one.key],
            "last_at": to_datetime(one.project.last_at),
            "bar": draw_length(one.line.measured.picos, dearest),
            "agents": draw_shares(one.agents),
            "weeks": _weeks(one),
        }
        for one in found
    ]
    return TemplatePage("projects.html", {"rows": rows, "url": url})


def _weeks(one: ProjectReport) -> object:
    busy = sum(1 for seconds in one.weeks if seconds)
    label = f"{format_duration(sum(one.weeks))} of work in {busy} of the last {WEEKS} weeks"
    return draw_sparkline(one.weeks, label)


def _project(request: PageRequest, store: Store) -> Answer:
    everything = parse_report_url(request, store, "all")
    root = request.get("root")
    key = everything.choices.projects.get(root, root)
    project = next((one for one in list_projects(store) if has_key(one, key)), None)
    if project is None:
        raise NotFound("There is no such project.")
    url = msgspec.structs.replace(everything, filters=ReportFilters(project=key or UNKNOWN))
    query = url.query(store)
    by, parts = report_over_time(query, Period(name="all"))
    (report,) = report_projects(query, [project], url.today)
    values = {
        "url": url,
        "place": project,
        "key": report.key,
        "portrait": report,
        "weeks": _weeks(report),
        "evidence": EVIDENCE[project.evidence],
        "total": report_total(query),
        "days": charts.day_chart(
            report_brief_lines(url.query(store, charts.calendar_year(url)), "day"), url, "cost"
        ),
        "by": by,
        "time": charts.cost_chart(parts, by, url),
        "models": charts.rank_lines(report_brief_lines(query, "model"), "model", url),
        "sessions": report_newest_sessions(query, _SESSIONS),
        "files": report_changed_files(query, "", _FILES),
        "tools": report_used_tools(query)[:_TOOLS],
    }
    return TemplatePage("project.html", values)


_FAILING, _FAILURES = 10, 50


def tools(request: PageRequest, store: Store) -> Answer:
    """Answer with all tools, or with one."""
    url = parse_report_url(request, store, "30d")
    query = url.query(store)
    found = report_used_tools(query)
    name = url.filters.tool
    if name and not found and not report_used_tools(url.query(store, url.all_time)):
        raise NotFound(f"No tool is called {name}.")
    most = max((one.tool.calls for one in found), default=0)
    values = {
        "url": url,
        "periods": PERIODS,
        "rows": [(one, draw_length(one.tool.calls, most), draw_shares(one.agents)) for one in found],
        "calls": sum(one.tool.calls for one in found),
        "errors": sum(one.tool.errors or 0 for one in found),
        "retries": sum(one.tool.retries or 0 for one in found),
        "failing": report_failing_sessions(query, _FAILING),
        "failures": report_failed_calls(query, name, _FAILURES),
        **_over_time(query, url),
    }
    return TemplatePage("tools.html", values)


def _over_time(query: ReportQuery, url: ReportUrl) -> dict[str, object]:
    period = bounded_period(query, url.period)
    by = choose_unit(period)
    counts = report_calls_by(query, by)
    periods = [
        charts.PeriodCalls(name, part, *counts.get(name, (0, 0))) for name, part in split_period(period, by)
    ]
    return {"by": by, "time": charts.failure_chart(periods, by, url)}


PAGES = (PageRoute("/projects", projects), PageRoute("/tools", tools))

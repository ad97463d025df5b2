"""How tools did: which were used, which failed, and where."""

from __future__ import annotations

from retold.archive.store import Store
from retold.export.svg import length, shares
from retold.reports.dashboards import calls_by, failing, failures, used, with_ends
from retold.reports.selection import parts, unit
from retold.search.report_query import ReportQuery
from retold.web import charts
from retold.web.answer import Answer, NotFound, PageRequest, PageRoute, TemplatePage
from retold.web.chosen import PERIODS, ReportUrl, chosen_in

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

"""A conversation written back into its agent's home: first what that means, then, if somebody says so, it is done."""

import os

from retold.archive.database import RetoldError
from retold.archive.store import Store
from retold.config import retold_home
from retold.maintenance.restore import RestorePlan, Wish, command_line, planned, write
from retold.search.listing import named
from retold.web.answer import Answer, NotFound, PageRequest, PageRoute, Redirect, TemplatePage
from retold.web.pages.health import desk
from retold.web.syncing import sync


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

"""A page that leads to the pages of many conversations."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from urllib.parse import quote

import msgspec

from retold.export.html.facts import cost
from retold.export.html.looks import looks
from retold.export.html.page import UNTITLED
from retold.export.names import clean, project_names
from retold.export.telling import ExportOptions
from retold.export.transcript import plural
from retold.export.zone import zone_names
from retold.model.session import Session
from retold.search.dates import local

_NOWHERE = "no project known"
_BEGINNING = datetime.min.replace(tzinfo=UTC)


class IndexRow(msgspec.Struct, frozen=True):
    """A conversation in the list."""

    href: str
    title: str
    agent: str
    at: datetime | None
    prompts: str
    cost: str


class IndexPage(msgspec.Struct, frozen=True):
    """The conversations of one project, the newest first."""

    name: str
    root: str
    rows: tuple[IndexRow, ...]


def index_pieces(entries: Iterable[tuple[str, Session]], choice: ExportOptions) -> Iterator[bytes]:
    """Yield a page with a link to each conversation; paths are relative to the page, timelines are not looked at."""
    rows: dict[str, list[IndexRow]] = {}
    for path, session in entries:
        root = session.project.root or session.project.hash or session.project.native_key or ""
        rows.setdefault(root, []).append(_row(path, session))
    shelves = tuple(_shelves(rows))
    told = (
        f"{plural(sum(map(len, rows.values())), 'conversation')} in {plural(sum(map(bool, rows)), 'project')}"
    )
    yield from looks(choice.templates).pieces(
        "index.html", shelves=shelves, told=told, is_redacted=choice.is_redacted, zone=zone_names()
    )


def _row(path: str, session: Session) -> IndexRow:
    at = session.ended_at or session.started_at
    return IndexRow(
        href=f"./{quote(path, errors='replace')}",  # in a path that begins so no colon makes a scheme
        title=session.title or UNTITLED,
        agent=session.agent,
        at=at and local(at),
        prompts=plural(session.counts.prompts, "prompt"),
        cost=cost(session.cost_usd),
    )


def _shelves(rows: dict[str, list[IndexRow]]) -> Iterator[IndexPage]:
    """Yield the projects, that with the newest conversation first."""
    names = project_names(root for root in rows if root)
    ordered = {root: tuple(sorted(held, key=_time, reverse=True)) for root, held in rows.items()}
    for root in sorted(ordered, key=lambda root: _time(ordered[root][0]), reverse=True):
        yield IndexPage(clean(names[root]) if root else _NOWHERE, root, ordered[root])


def _time(row: IndexRow) -> datetime:
    return row.at or _BEGINNING

"""A conversation as a page of its own."""

from collections.abc import Iterable, Iterator

import msgspec

from retold.export.html.facts import Fact, facts, left_out, problems
from retold.export.html.frame import RenderContext
from retold.export.html.looks import looks
from retold.export.html.runs import EntryRun, Prompt, contents, runs
from retold.export.telling import ExportOptions, ExportSession
from retold.export.zone import zone_names

UNTITLED = "A conversation without a title"


class PageView(msgspec.Struct, frozen=True):
    """A page, as templates get it."""

    title: str
    facts: tuple[Fact, ...]
    problems: str
    contents: tuple[Prompt, ...]
    """What people said, a line each."""
    runs: Iterator[EntryRun]
    """The conversation, piece by piece: it can be gone through once."""
    left_out: str
    is_redacted: bool
    zone: str
    """Name of the time zone of the times."""


def pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield the page of each conversation; a file holds one."""
    for telling in tellings:
        yield from looks(choice.templates).pieces("page.html", page=_page(telling, choice))


def _page(telling: ExportSession, choice: ExportOptions) -> PageView:
    session, frame = telling.session, RenderContext(telling, choice)
    return PageView(
        title=session.title or UNTITLED,
        facts=tuple(facts(session)),
        problems=problems(session),
        contents=tuple(contents(frame)),
        runs=runs(frame),
        left_out=left_out(frame),
        is_redacted=choice.is_redacted,
        zone=zone_names(),
    )

"""What was done to a file, as passages: the conversations that changed it, and their edits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from retold.archive.queries.conditions import Condition, of_key
from retold.export.diffs import FileEdit, changed_by, edits_of
from retold.export.load import Quoting
from retold.export.transcript import fate_of, plural
from retold.mcp.citing import cleanly_cited, moment
from retold.mcp.passage import Passage
from retold.mcp.tool import ToolContext
from retold.model.session import Message, ToolCall
from retold.reports.dashboards import Changed, changers, files_meant
from retold.search.filters import Filters
from retold.search.pages import SessionSummary, glances
from retold.search.report_query import ReportQuery, span
from retold.sessions.pages import slices, turn_places

_MOST_FILES = 50
"""Files that are told of where several are meant."""
_MOST_EDITS = 40
"""Edits of one session that are told."""
_AT_ONCE = 10
"""Sessions that are asked for at a time."""


def changes(asking: ToolContext, path: str, sessions: Sequence[Condition]) -> Iterator[Passage]:
    """Yield the conversations that changed a file, or, where several are meant, which."""
    question = _question(asking, sessions)
    files = files_meant(question, path, _MOST_FILES)
    if len(files) > 1:
        yield from islice(_files(files), asking.first, None)
    elif files:
        yield from _sessions(asking, question, files[0])


def _question(asking: ToolContext, sessions: Sequence[Condition]) -> ReportQuery:
    wanted = Filters()
    wanted.sessions += sessions
    return ReportQuery(asking.record, wanted, span(None, None, is_utc=True))


def _files(files: list[Changed]) -> Iterator[Passage]:
    """Yield which files are meant, each by a path that means no other."""
    names, ends = [file.name for file in files], _ends([file.path for file in files])
    lines = [
        f"{file.name if names.count(file.name) == 1 else end}: {plural(file.changes, 'change')}"
        f" in {plural(file.sessions, 'conversation')}, last {moment(file.last_at) or 'at no known time'}"
        for file, end in zip(files, ends, strict=True)
    ]
    yield Passage("Several files are meant: ask again with one of these paths", "\n".join(lines))


def _ends(paths: Sequence[str]) -> list[str]:
    """Return the shortest end of each path that is of no other: a whole path may hold a name that is not told."""
    parts = [path.replace("\\", "/").split("/") for path in paths]
    deepest = max(map(len, parts))
    ends = [["/".join(part[-length:]) for part in parts] for length in range(1, deepest + 1)]
    return [
        next((same[place] for same in ends if same.count(same[place]) == 1), path)
        for place, path in enumerate(paths)
    ]


def _sessions(asking: ToolContext, question: ReportQuery, file: Changed) -> Iterator[Passage]:
    """Yield the sessions that changed a file, the newest first."""
    place = asking.first
    while found := changers(question, file.path, _AT_ONCE, place):
        for changer in found:
            for card in glances(asking.record, [of_key(changer.key)], 1):
                quoting = Quoting(asking.record, card.key, asking.redactors)
                head = f"{cleanly_cited(card, quoting.text)} · {file.name}"
                yield Passage(head, _edits(asking, card, quoting, file.path), is_clean=True)
        place += len(found)


def _edits(asking: ToolContext, card: SessionSummary, quoting: Quoting, path: str) -> str:
    """Return what a session changed in a file, call by call."""
    found = edits_of(slices(asking.record, card.key), path)
    begins = turn_places(asking.record, card.session, card.key)
    told = [_edit(begins, quoting, edit) for edit in islice(found, _MOST_EDITS)]
    left = sum(1 for _ in found)
    more = [f"{plural(left, 'more change')}: read_session with tools `full` tells them"] if left else []
    return "\n\n".join([*told, *more])


def _edit(begins: Sequence[int], quoting: Quoting, edit: FileEdit) -> str:
    message = quoting.entry(edit.message)
    part = message.parts[edit.place] if isinstance(message, Message) else None
    call = part if isinstance(part, ToolCall) else edit.call
    turn = bisect_right(begins, edit.seq)
    became = [word for word in (call.status if call.status != "success" else "", fate_of(message)) if word]
    told = f" ({', '.join(became)})" if became else ""
    at = moment(call.at or message.at)
    head = f"turn {turn}, {call.name}{told}{f', {at}' if at else ''}"
    return "\n".join([head, *(change.diff for change in changed_by(call))])

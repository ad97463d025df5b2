"""Rows of files that calls name."""

from collections.abc import Iterator

from retold.archive.rows import CHANGING
from retold.lake.rows.tool_calls import calls_in
from retold.lake.told import RowSource
from retold.model.session import touched
from retold.projects.matching import in_project


def file_rows(told: RowSource) -> Iterator[tuple[object, ...]]:
    """Yield a row for each file that a call names, however often it does."""
    for seq, place, message, call in calls_in(told):
        for path in dict.fromkeys(touched(call)):
            yield (
                seq,
                place,
                call.id,
                path,
                in_project(path, told.session.project.root),
                call.canonical,
                call.canonical in CHANGING,
                call.status,
                call.at or message.at,
                message.fate,
                message.own,
            )

"""Names in a question that the archive does not know, each with the names that it knows."""

from __future__ import annotations

import re

from retold.archive.conditions import TOOL_KINDS, teach
from retold.archive.facets import NAMED, name_rows
from retold.projects.matching import is_meant

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from retold.archive.conditions import Condition
    from retold.archive.record import Record

MOST = 30
"""How many names a message lists."""
_PLAIN = re.compile(r"[\w.:@/+-]{1,64}")
"""Names in a transcript may be anything; a message lists only names of this form."""


def unknown_names(
    record: Record, asked: Iterable[tuple[str, str]], conditions: Sequence[Condition] = ()
) -> list[str]:
    """Return a message for each filter whose name no session has; it lists the names in sessions that meet the conditions."""
    teach(record.connection, is_meant)
    found = []
    for kind, name in dict.fromkeys(asked):
        if kind in NAMED and not (kind == "tool" and name.lower() in TOOL_KINDS):
            rows = [
                [str(value) for value in row if value is not None]
                for row in name_rows(record, kind, conditions)
            ]
            if not _is_known(kind, name.lower(), [value.lower() for row in rows for value in row]):
                found.append(_message(kind, name, list(dict.fromkeys(row[0] for row in rows))))
    return found


def _is_known(kind: str, name: str, names: Iterable[str]) -> bool:
    return any(name in known if kind == "model" else name == known for known in names)


def _message(kind: str, name: str, names: Sequence[str]) -> str:
    shown = [known for known in names if _PLAIN.fullmatch(known)][:MOST]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    there = f"there are {', '.join(shown)}{more}" if shown else "there are none"
    kinds = f"; the kinds of tools are {', '.join(TOOL_KINDS)}" if kind == "tool" else ""
    return f"no {kind} is called {name}: {there}{kinds}"

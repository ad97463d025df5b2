"""Names in a question that the archive does not know, each with the names that it knows."""

from __future__ import annotations

import re

from retold.archive.queries.conditions import TOOL_KINDS, register_functions
from retold.archive.queries.facets import NAMED, name_rows
from retold.projects.matching import is_meant, last_name

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from retold.archive.queries.conditions import Condition
    from retold.archive.store import Store

    Row = Sequence[Any]

MOST = 30
"""How many names a message lists."""
_PLAIN = re.compile(r"[\w.:@/+-]{1,64}")
"""Names in a transcript may be anything; a message lists only names of this form."""


def unknown_names(
    record: Store, asked: Iterable[tuple[str, str]], conditions: Sequence[Condition] = ()
) -> list[str]:
    """Return a message for each filter whose name no session has; it lists the names in sessions that meet the conditions."""
    register_functions(record.connection, is_meant)
    found = []
    for kind, name in dict.fromkeys(asked):
        if kind in NAMED and not (kind == "tool" and name.lower() in TOOL_KINDS):
            rows = list(name_rows(record, kind, conditions))
            if not any(_is_known(kind, name, row) for row in rows):
                found.append(_message(kind, name, list(dict.fromkeys(_names(kind, rows)))))
    return found


def _is_known(kind: str, name: str, row: Row) -> bool:
    """Tell whether a name means what has the names of a row."""
    if kind == "project":
        root, native_key, digest = row
        return is_meant(root, native_key, digest, name)
    known = [str(value).lower() for value in row if value is not None]
    return any(name.lower() in value if kind == "model" else name.lower() == value for value in known)


def _names(kind: str, rows: Iterable[Row]) -> Iterator[str]:
    """Yield by which name each thing is listed; a project without a root has none."""
    for first, *_ in rows:
        if first is not None:
            yield last_name(first) if kind == "project" else str(first)


def _message(kind: str, name: str, names: Sequence[str]) -> str:
    shown = [known for known in names if _PLAIN.fullmatch(known)][:MOST]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    there = f"there are {', '.join(shown)}{more}" if shown else "there are none"
    kinds = f"; the kinds of tools are {', '.join(TOOL_KINDS)}" if kind == "tool" else ""
    return f"no {kind} is called {name}: {there}{kinds}"

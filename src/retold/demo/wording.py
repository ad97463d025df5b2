"""What the files of all three agents have in common: times and JSON as JavaScript and Rust write them."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

Json = dict[str, Any]


def stamp(at: datetime) -> str:
    """Return a time to the millisecond."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def line(record: Json) -> str:
    """Return a record as a line."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def lines(records: Iterable[Json]) -> str:
    """Return records as lines."""
    return "".join(map(line, records))


def document(value: object) -> str:
    """Return a value as a document over several lines."""
    return json.dumps(value, ensure_ascii=False, indent=2)

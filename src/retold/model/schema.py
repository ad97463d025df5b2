"""JSON Schemas of the JSON form, made from the types themselves."""

from typing import Any

import msgspec

from retold.model.problem import Problem
from retold.model.session import VERSION, Session
from retold.model.steps import AnyStep


def schemas() -> dict[str, dict[str, Any]]:
    """Return each schema by the name of what it describes."""
    kinds: dict[str, Any] = {"session": Session, "event": AnyStep, "problem": Problem}
    return {name: _schema(name, kind) for name, kind in kinds.items()}


def _schema(name: str, kind: Any) -> dict[str, Any]:
    schema = msgspec.json.schema(kind)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"retold/{VERSION}/{name}",
        **schema,
    }

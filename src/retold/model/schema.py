"""JSON Schemas of the JSON form, made from the types themselves."""

from typing import Any

import msgspec

from retold.model.problem import Problem
from retold.model.session import VERSION, Session
from retold.model.steps import AnyStep


def schemas() -> dict[str, dict[str, Any]]:
    """Return each schema by the name of what it describes."""
    kinds: dict[str, Any] = {"session": Session, "event": AnyStep, "problem": Problem}
    made = {name: _schema(name, kind) for name, kind in kinds.items()}
    return {**made, "summary": _summary(made["session"])}


def _summary(session: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of what `list` tells: a session without its timeline."""
    definition = session["$defs"]["Session"]
    fields = {name: field for name, field in definition["properties"].items() if name != "timeline"}
    required = [name for name in definition["required"] if name != "timeline"]
    shorter = {**definition, "properties": fields, "required": required}
    return {**session, "$id": f"retold/{VERSION}/summary", "$defs": {**session["$defs"], "Session": shorter}}


def _schema(name: str, kind: Any) -> dict[str, Any]:
    schema = msgspec.json.schema(kind)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"retold/{VERSION}/{name}",
        **schema,
    }

"""Spans as OTLP JSON: one export request per line and conversation, as the protocol's file exporter writes them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from retold.export.dialogue import agent_version
from retold.export.gen_ai import SCHEMA_URL
from retold.export.span_facts import Attributes, Value
from retold.export.spans import Span, SpanEvent, conversation_spans
from retold.export.telling import ExportOptions, ExportSession
from retold.model.serialization import encoded
from retold.model.session import Session

SCOPE = "retold"
"""Who says so."""
ERROR = 2
"""The status of a span in which something went wrong, in the numbers of the protocol."""

Json = dict[str, Any]


def pieces(tellings: Iterable[ExportSession], choice: ExportOptions) -> Iterator[bytes]:
    """Yield the spans of each conversation and its subagents as one request."""
    scope, url = encoded({"name": SCOPE}), encoded(SCHEMA_URL)
    for telling in tellings:
        about = encoded({"attributes": _attributes(resource(telling.session, choice))})
        yield b'{"resourceSpans":[{"resource":' + about + b',"scopeSpans":[{"scope":' + scope + b',"spans":['
        for place, span in enumerate(conversation_spans(telling, choice)):
            yield (b"," if place else b"") + encoded(_span(span))
        yield b'],"schemaUrl":' + url + b'}],"schemaUrl":' + url + b"}]}\n"


def resource(session: Session, choice: ExportOptions) -> Attributes:
    """Return what the spans come from: the agent, and whether secrets were taken out."""
    told: Attributes = {"service.name": session.agent, "retold.redacted": choice.is_redacted}
    version = agent_version(session)
    return told if version is None else told | {"service.version": version}


def _span(span: Span) -> Json:
    told: Json = {
        "traceId": span.trace.hex(),
        "spanId": span.id.hex(),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
    }
    if span.parent is not None:
        told["parentSpanId"] = span.parent.hex()
    if span.happenings:
        told["events"] = [_event(happening) for happening in span.happenings]
    if span.error is not None:
        told["status"] = {"code": ERROR, "message": span.error}
    return told


def _event(happening: SpanEvent) -> Json:
    return {
        "timeUnixNano": str(happening.at),
        "name": happening.name,
        "attributes": _attributes(happening.attributes),
    }


def _attributes(told: Mapping[str, Value]) -> list[Json]:
    return [{"key": name, "value": _value(value)} for name, value in told.items()]


def _value(value: Value) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": value}

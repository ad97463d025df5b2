"""Decodes exported spans in both encodings with the protocol's own library."""

import json
from base64 import b64encode
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

Json = dict[str, Any]
IDS = ("traceId", "spanId", "parentSpanId")


def decode_proto(content: bytes) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest.FromString(content)


def decode_json(line: bytes) -> ExportTraceServiceRequest:
    """Decode OTLP JSON, which is the JSON of Protocol Buffers with hexadecimal ids."""
    tree = json.loads(line)
    for about in tree["resourceSpans"]:
        for scope in about["scopeSpans"]:
            for span in scope["spans"]:
                known = {name: b64encode(bytes.fromhex(span[name])).decode() for name in IDS if name in span}
                span.update(known)
    return ParseDict(tree, ExportTraceServiceRequest())


def spans(request: ExportTraceServiceRequest) -> list[Span]:
    return [span for about in request.resource_spans for scope in about.scope_spans for span in scope.spans]


def span_attributes(span: Span | Span.Event) -> Json:
    """Return the attributes of a span or of an event."""
    return {pair.key: getattr(pair.value, str(pair.value.WhichOneof("value"))) for pair in span.attributes}


def span_tree(request: ExportTraceServiceRequest) -> str:
    """Return the spans as an indented tree with durations, errors and events."""
    below: dict[bytes, list[Span]] = {}
    for span in spans(request):
        below.setdefault(span.parent_span_id, []).append(span)
    return "\n".join(_drawn(below, b"", 0))


def _drawn(below: dict[bytes, list[Span]], parent: bytes, depth: int) -> list[str]:
    lines: list[str] = []
    for span in sorted(below.get(parent, []), key=lambda one: one.start_time_unix_nano):
        seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
        failed = f"  ✗ {span.status.message}" if span.status.code else ""
        lines.append(f"{'  ' * depth}{span.name}  {seconds:.1f} s{failed}")
        lines += [f"{'  ' * depth}  · {event.name}" for event in span.events]
        lines += _drawn(below, span.span_id, depth + 1)
    return lines

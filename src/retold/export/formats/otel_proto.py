"""Spans as Protocol Buffers, for `/v1/traces`: consecutive export requests are one valid request.

Fields are numbered as in opentelemetry/proto/trace/v1/trace.proto, version 1.10.
"""

from collections.abc import Iterable, Iterator, Mapping

from retold.export.formats.dialogue import SCHEMA_URL
from retold.export.formats.otel import ERROR, SCOPE, Span, Value, conversation_spans, resource_attributes
from retold.export.formats.registry import ExportOptions, ExportSession

BATCH = 1_000_000
"""Bytes of spans that are held in memory before they are written."""
_VARINT, _FIXED, _BYTES = 0, 1, 2
_MASK = 2**64 - 1


def encode_sessions(exports: Iterable[ExportSession], options: ExportOptions) -> Iterator[bytes]:
    """Yield the spans of each conversation and its subagents, in batches."""
    scope = _message(1, _text(1, SCOPE))
    for export in exports:
        about = _message(1, _attributes(1, resource_attributes(export.session, options)))
        for spans in _batches(conversation_spans(export, options)):
            scoped = _message(2, scope + spans + _text(3, SCHEMA_URL))
            yield _message(1, about + scoped + _text(3, SCHEMA_URL))


def _batches(spans: Iterable[Span]) -> Iterator[bytes]:
    batch = bytearray()
    for span in spans:
        batch += _message(2, _span(span))
        if len(batch) > BATCH:
            yield bytes(batch)
            batch.clear()
    if batch:
        yield bytes(batch)


def _span(span: Span) -> bytes:
    fields = [
        _message(1, span.trace),
        _message(2, span.id),
        b"" if span.parent is None else _message(4, span.parent),
        _text(5, span.name),
        _number(6, span.kind),
        _time(7, span.start),
        _time(8, span.end),
        _attributes(9, span.attributes),
        *(
            _message(11, _time(1, event.at) + _text(2, event.name) + _attributes(3, event.attributes))
            for event in span.events
        ),
    ]
    if span.error is not None:
        fields.append(_message(15, _text(2, span.error) + _number(3, ERROR)))
    return b"".join(fields)


def _attributes(field: int, attributes: Mapping[str, Value]) -> bytes:
    pairs = (_text(1, name) + _message(2, _value(value)) for name, value in attributes.items())
    return b"".join(_message(field, pair) for pair in pairs)


def _value(value: Value) -> bytes:
    if isinstance(value, bool):
        return _number(2, int(value))
    if isinstance(value, int):
        return _number(3, value)
    return _text(1, value)


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(number & _MASK)


def _time(field: int, moment: int) -> bytes:
    return _varint(field << 3 | _FIXED) + moment.to_bytes(8, "little")


def _varint(number: int) -> bytes:
    """Return a number as a varint: seven bits in each byte, the lowest first."""
    written = bytearray()
    while number > 127:  # noqa: PLR2004 - seven bits
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)

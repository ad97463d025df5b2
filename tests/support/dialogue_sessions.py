"""Sessions built entry by entry for exports, and Hypothesis strategies for arbitrary timelines."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from retold.agents.registry import read
from retold.export.formats.registry import ExportSession
from retold.model.session import (
    Attachment,
    Entry,
    Event,
    Message,
    Opaque,
    Session,
    Text,
    Thinking,
    ToolCall,
    Usage,
)

SAMPLE = Path(__file__).parents[1] / "fixtures" / "gemini_sample.json"
AT = datetime(2026, 3, 1, 9, tzinfo=UTC)


def sample_session() -> Session:
    (session,) = read(SAMPLE)
    return session


def export_session(*entries: Entry, **more: Any) -> ExportSession:
    """Return a Gemini session with this timeline."""
    facts = {"timeline": entries, "started_at": AT, "ended_at": None, "models": (), "extra": {}, **more}
    return ExportSession(msgspec.structs.replace(sample_session(), **facts))


def user(text: str, minute: int | None = 0, **more: Any) -> Message:
    at = None if minute is None else AT + timedelta(minutes=minute)
    told = {"id": text, "fate": "live", **more}
    return Message(told.pop("id"), "user", at, told.pop("fate"), text, None, None, (Text(text),), **told)


def assistant(*parts: Any, minute: int | None = 1, **more: Any) -> Message:
    at = None if minute is None else AT + timedelta(minutes=minute)
    told = {"id": "a", "fate": "live", "model": "gemini-2.5-pro", "usage": None, **more}
    return Message(
        told.pop("id"),
        "assistant",
        at,
        told.pop("fate"),
        None,
        told.pop("model"),
        told.pop("usage"),
        parts,
        **told,
    )


def call(**more: Any) -> ToolCall:
    told: dict[str, Any] = {
        "id": "c1", "name": "read_file", "canonical": "file_read", "category": "Read", "arguments": {"path": "a"},
        "status": "success", "native_status": None, "result": "text", "error": None, "at": None, "child": None,
    }  # fmt: skip
    return ToolCall(**{**told, **more})


def usage(request: str, given: int = 100, output: int = 10, reasoning: int = 5) -> Usage:
    return Usage(request, given, 40, 7, output, reasoning, 0, given + output + reasoning)


TEXTS = st.text(max_size=20)
PARTS = st.one_of(
    TEXTS.map(Text),
    st.builds(Thinking, st.none() | TEXTS, TEXTS),
    st.builds(call, id=TEXTS, name=TEXTS, status=st.sampled_from(["success", "error", "cancelled", "unknown"]),
              arguments=st.dictionaries(TEXTS, st.integers() | TEXTS | st.none(), max_size=2),
              result=st.none() | TEXTS, error=st.none() | TEXTS),
    st.builds(Attachment, path=st.none() | TEXTS, media_type=st.none() | TEXTS, data=st.none() | TEXTS),
    st.builds(Opaque, st.integers() | TEXTS),
)  # fmt: skip
TIMES = st.none() | st.datetimes(timezones=st.just(UTC))
FATES = st.sampled_from(["live", "rewound", "compacted", "superseded"])
FIGURES = st.none() | st.integers()
USAGES = st.builds(Usage, TEXTS, FIGURES, FIGURES, FIGURES, FIGURES, FIGURES, FIGURES, FIGURES)
MESSAGES = st.builds(
    Message, st.none() | TEXTS, st.sampled_from(["user", "assistant", "system"]), TIMES, FATES, st.none() | TEXTS,
    st.none() | TEXTS, st.none() | USAGES, st.lists(PARTS, max_size=3).map(tuple), st.booleans(), st.none() | TEXTS,
)  # fmt: skip
EVENTS = st.builds(
    Event, st.none() | TEXTS, st.sampled_from(["compaction", "error", "notice"]), TIMES, FATES, TEXTS
)
TIMELINES = st.lists(MESSAGES | EVENTS, max_size=6)

"""Every table is what its description says, whatever sessions hold."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from retold.lake.arrow import make_batch, schema_of
from retold.lake.session_rows import ROWS, RowSource, UnreadFile, month_of, table_rows
from retold.model.events import steps
from retold.model.problem import problem
from retold.model.session import Context, Event, Message, Session, ToolCall
from retold.model.tables import TABLES
from support.conversation_files import FORMS, turns
from support.gemini_home import DAY
from support.synced_archive import sync_conversations


@pytest.fixture(params=sorted(FORMS))
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    FORMS[request.param].write(tmp_path, 7, turns("heron", "otter", "vole"))
    (found,) = sync_conversations(tmp_path, agent=request.param.partition("-")[0])
    return found


def table_of(name: str, told: Sequence[RowSource | UnreadFile]) -> pa.Table:
    batch = make_batch(schema_of(name), [row for one in told for row in table_rows(name, one)])
    batch.validate(full=True)
    return pa.Table.from_batches([batch])


@pytest.mark.parametrize("name", TABLES)
def test_rows_have_a_value_for_each_column_and_none_where_there_must_be_one(
    name: str, session: Session
) -> None:
    table = table_of(name, [RowSource(session, 7)])
    assert table.column_names == TABLES[name].names
    needed = [column.name for column in TABLES[name].columns if not column.is_nullable]
    assert {one: table[one].null_count for one in needed} == dict.fromkeys(needed, 0)
    assert set(table["session"].to_pylist()) <= {session.key}
    assert table.schema.field("agent").metadata[b"comment"]


def test_there_are_rows_for_every_table() -> None:
    assert ROWS.keys() == TABLES.keys()


def test_a_session_is_one_row_with_its_counts(session: Session) -> None:
    (row,) = table_of("sessions", [RowSource(session, 7)]).to_pylist()
    assert (row["prompts"], row["messages"]) == (3, session.counts.messages)
    assert (row["total_tokens"], row["requests"]) == (session.usage.total, session.usage.requests)
    assert (row["started_at"], row["month"]) == (session.started_at, DAY[:7])
    assert [one["path"] for one in row["sources"]] == [one.path for one in session.sources]


def test_messages_calls_and_events_are_all_told(session: Session) -> None:
    messages = table_of("messages", [RowSource(session, 7)]).to_pylist()
    calls = table_of("tool_calls", [RowSource(session, 7)]).to_pylist()
    events = table_of("events", [RowSource(session, 7)]).to_pylist()
    told = [part for one in session.timeline if isinstance(one, Message) for part in one.parts]
    assert [row["seq"] for row in messages] == list(range(len(session.timeline)))
    assert [row["text"] for row in messages if row["is_prompt"]] == [f"asked {word}" for word in ("heron", "otter", "vole")]  # fmt: skip
    assert [row["event"] is not None for row in messages] == [
        isinstance(one, Event) for one in session.timeline
    ]
    assert [row["call"] for row in calls] == [part.id for part in told if isinstance(part, ToolCall)]
    assert ["given" in row["result"] for row in calls] == [True] * 3
    assert len(events) == len(list(steps(session, with_text=True)))
    assert "given" not in str(events)


def test_requests_are_the_ledger(session: Session) -> None:
    rows = table_of("requests", [RowSource(session, 7, {"nobody": 1})]).to_pylist()
    assert len(rows) == session.usage.requests
    assert sum(row["total_tokens"] or 0 for row in rows) == (session.usage.total or 0)
    names = [row["request"] for row in rows]
    priced = table_of("requests", [RowSource(session, 7, dict.fromkeys(names, 1_500_000))]).to_pylist()
    assert {row["cost_usd"] for row in priced} == {Decimal("0.0000015")}


def test_a_file_without_a_session_is_a_problem_and_nothing_else() -> None:
    refused = UnreadFile("gemini", "laptop", problem("not-a-session", "no JSON", "a.json"))
    (row,) = table_of("problems", [refused]).to_pylist()
    assert (row["agent"], row["month"], row["home"], row["session"]) == ("gemini", "unknown", "laptop", None)
    assert (row["code"], row["severity"], row["path"]) == ("not-a-session", "loss", "a.json")
    assert not any(table_of(name, [refused]).num_rows for name in TABLES if name != "problems")


def test_hostile_values_are_rows_too(session: Session) -> None:
    message = next(one for one in session.timeline if isinstance(one, Message) and one.parts)
    call = ToolCall(
        "c", "shell", "shell_exec", "Execute", {"command": "x"}, "error", None, "half \udc00", "\ud83d", None, None,
        exit_code=2**40, took_ms=2**70,
    )  # fmt: skip
    usage = msgspec.structs.replace(session.usage, total=2**80)
    hostile = msgspec.structs.replace(
        session,
        title="\ud800",
        tags=("\udc00",),
        usage=usage,
        cost_usd=Decimal(10) ** 30,
        timeline=(msgspec.structs.replace(message, parts=(call,)),),
    )
    tables = {name: table_of(name, [RowSource(hostile, 7)]).to_pylist() for name in TABLES}
    (row,), (called,) = tables["sessions"], tables["tool_calls"]
    assert (row["title"], row["tags"], row["total_tokens"]) == ("?", ["?"], 2**63 - 1)
    assert (called["result"], called["exit_code"], called["took_ms"]) == ("half ?", None, 2**63 - 1)


def test_a_result_that_was_moved_away_is_told_whole(session: Session) -> None:
    call = ToolCall("c", "read", "file_read", "Read", {}, "success", None, "the fir…", None, None, None)
    moved = msgspec.structs.replace(call, full_result="the first of all herons")
    message = next(one for one in session.timeline if isinstance(one, Message))
    timeline = (msgspec.structs.replace(message, parts=(call, moved)),)
    told = RowSource(msgspec.structs.replace(session, timeline=timeline), 7)
    rows = table_of("tool_calls", [told]).to_pylist()
    assert [row["result"] for row in rows] == ["the fir…", "the first of all herons"]


def test_a_result_is_told_with_its_call_and_with_no_message(session: Session) -> None:
    parts = (
        Context("tool_result", "of a call", "c"),
        Context("tool_result", "of none"),
        Context("reminder", "put in"),
    )
    message = next(one for one in session.timeline if isinstance(one, Message))
    timeline = (msgspec.structs.replace(message, parts=parts),)
    (row,) = table_of(
        "messages", [RowSource(msgspec.structs.replace(session, timeline=timeline), 7)]
    ).to_pylist()
    assert row["context"] == "of none\nput in"


def test_the_month_is_that_of_the_beginning() -> None:
    assert month_of(datetime(2026, 1, 31, 23, 59, tzinfo=UTC)) == "2026-01"
    assert month_of(None) == "unknown"

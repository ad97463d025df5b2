"""A session with a given text or JSON value in every field that can hold one."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from retold.model.problem import Problem
from retold.model.session import (
    VERSION,
    AgentDisplay,
    Attachment,
    Context,
    Counts,
    Coverage,
    DiffDisplay,
    Event,
    FilesDisplay,
    Message,
    Opaque,
    OpaqueDisplay,
    Part,
    Project,
    Session,
    SourceFile,
    Text,
    TextDisplay,
    Thinking,
    Todo,
    TodosDisplay,
    ToolCall,
    Totals,
    Usage,
)

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="


def session_filled_with(
    told: Callable[[], str], value: Callable[[], Any] = dict, key: str = "made:session-1"
) -> Session:
    """Return a session whose texts come from calls of `told`, and whose JSON values from calls of `value`."""
    return Session(
        version=VERSION,
        key=key,
        agent="made",
        native_id="1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        kind="main",
        project=Project(told(), told(), "0" * 64, "recorded"),
        title=told(),
        summary=told(),
        first_prompt=told(),
        last_prompt=told(),
        tags=(told(),),
        started_at=AT,
        ended_at=AT,
        are_times_derived=False,
        status="success",
        models=("made-1",),
        parent=None,
        children=("made:session-1/child",),
        counts=Counts(1, 2, 1, 0),
        usage=Totals(1, None, None, 1, None, None, 2, 1, estimated=False),
        cost_usd=None,
        sources=(SourceFile(told(), told(), "made", 10),),
        coverage=Coverage(3, 1),
        problems=(Problem("unknown-part", "note", told(), told(), 3, told()),),
        view="full",
        extra={"note": told(), told(): value()},
        timeline=(
            Message(
                "m1",
                "user",
                AT,
                "live",
                told(),
                None,
                None,
                (Text(told()), Opaque(value())),
                extra={"x": value()},
            ),
            _answer(told, value),
            Event("e1", "notice", AT, "live", told(), Opaque(told()), extra={"y": [told()]}),
        ),
    )


def _answer(told: Callable[[], str], value: Callable[[], Any]) -> Message:
    parts: tuple[Part, ...] = (
        Thinking(told(), told(), AT, "Er" + "Ab3/" * 40),
        Attachment(told(), "image/png", PICTURE),
        Context("hook", told(), attachments=(Attachment(told(), "text/plain", "aGVsbG8="),)),
        *(_call(number, told, value) for number in range(6)),
    )
    usage = Usage("r1", 1, None, None, 1, None, None, 2)
    return Message("m2", "assistant", AT, "live", None, "made-1", usage, parts, response="r1")


def _call(number: int, told: Callable[[], str], value: Callable[[], Any]) -> ToolCall:
    displays = (
        TextDisplay(told()),
        DiffDisplay(told(), told(), told(), told(), extra={"z": value()}),
        TodosDisplay((Todo(told(), "open"),)),
        FilesDisplay(told(), (told(),), ({"line": told()},)),
        AgentDisplay(told(), "done", told(), ({"did": value()},)),
        OpaqueDisplay(value()),
    )
    return ToolCall(
        f"c{number}",
        "run_shell_command",
        "shell_exec",
        "Execute",
        {"command": told(), "nested": {"list": [told(), value()]}, told(): 1},
        "success",
        told(),
        told(),
        told(),
        AT,
        None,
        title=told(),
        description=told(),
        display=displays[number],
        server=told(),
        server_tool=told(),
        full_result=told(),
        other_results=(told(),),
        extra={"more": value()},
    )

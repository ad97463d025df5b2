"""Whether later versions of a conversation hold everything of an earlier one, field by field."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from retold.model.session import (
    Attachment,
    Context,
    Entry,
    Event,
    Message,
    Opaque,
    Project,
    Session,
    Text,
    TextDisplay,
    Thinking,
    ToolCall,
    Usage,
)
from retold.synchronization import containment
from retold.synchronization.containment import LaterVersions
from support.full_session import agent, at, call, session, user

IGNORED = {"fate", "own", "child"}
GROWING = {".text", ".prompt", ".subject", ".result", ".error", ".full_result"}
"""What an agent may append to; anything else that is longer is something else."""
PICTURE = Attachment("tide.png", "image/png", "aGVyb24=")


def holds(later: Session, earlier: Session) -> bool:
    return LaterVersions([later]).contain(earlier)


def conversation(*more: Entry) -> Session:
    done = call(
        "run_shell_command", "shell_exec", arguments={"command": "tide --table"}, native_status="success",
        result="06:12 high", error="late", at=at(3), title="Shell", description="prints a table",
        display=TextDisplay("06:12 high water"), is_markdown=True, exit_code=2, server="harbour", server_tool="tide",
        attachments=(PICTURE,), full_result="06:12 high water\n12:30 low", other_results=("masked",), signature="s2",
        extra={"zone": {"name": "UTC", "hours": [1, 2]}}, took_ms=40,
    )  # fmt: skip
    return session(
        user(1, "When is high tide?", PICTURE, Context("hook", "a hook", call="c1", is_error=True, attachments=(PICTURE,))),
        agent(2, Thinking("Tide", "thought", at(2), "s1"), Text("At six.", "s0"), done, Opaque({"kind": ["new"]}), response="r",
              extra={"finish": "stop"}),
        Event("e1", "info", at(4), "live", "compressed", Opaque({"by": 3}), extra={"level": 1}),
        Event(None, "notice", at(5), "live", "without an id"),
        *more,
        summary="Tides",
        extra={"branch": "main"},
    )  # fmt: skip


def variants(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a value with one thing in it changed or missing, for each thing in it, with the path of that thing."""
    for step, item, put in places(value):
        if item not in (None, "", False):
            yield f"{step} is gone", put(None)
        yield from ((f"{step}{path}", put(other)) for path, other in variants(item))
        if not isinstance(item, msgspec.Struct | dict | tuple | list) and item not in (None, ""):
            yield f"{step} is another", put(changed(item))
        if isinstance(item, str) and item and step not in GROWING:
            yield f"{step} is longer", put(f"{item} and more")


def places(value: Any) -> Iterator[tuple[str, Any, Callable[[Any], Any]]]:
    """Yield everything that stands directly in a value: where, what, and how to put something else there."""
    match value:
        case msgspec.Struct():
            for name in value.__struct_fields__:
                if name not in IGNORED:
                    yield f".{name}", getattr(value, name), partial(put_field, value, name)
        case dict():
            for name, item in value.items():
                yield f"[{name}]", item, partial(put_value, value, name)
        case tuple() | list():
            for number, item in enumerate(value):
                yield f"[{number}]", item, partial(put_item, value, number)


def put_field(value: msgspec.Struct, name: str, other: Any) -> msgspec.Struct:
    return msgspec.structs.replace(value, **{name: other})


def put_value(value: dict[str, Any], name: str, other: Any) -> dict[str, Any]:
    return {**value, name: other}


def put_item(value: Sequence[Any], number: int, other: Any) -> Any:
    return type(value)([*value[:number], *([] if other is None else [other]), *value[number + 1 :]])  # type: ignore[call-arg]


def changed(value: Any) -> Any:
    match value:
        case str():
            return f"not {value}"
        case bool():
            return not value
        case int():
            return value + 1
    return value + timedelta(seconds=1)


def test_a_version_holds_itself() -> None:
    assert holds(conversation(), conversation())


def test_every_field_of_every_entry_is_compared() -> None:
    earlier = conversation()
    found = [
        f"{place}{path}"
        for place, entry in enumerate(earlier.timeline)
        for path, other in variants(entry)
        if holds(
            msgspec.structs.replace(
                earlier, timeline=(*earlier.timeline[:place], other, *earlier.timeline[place + 1 :])
            ),
            earlier,
        )
    ]
    assert found == []
    assert sum(1 for entry in earlier.timeline for _ in variants(entry)) > 100


@pytest.mark.parametrize("place", range(4))
def test_an_entry_that_is_missing_is_a_loss(place: int) -> None:
    earlier = conversation()
    rest = (*earlier.timeline[:place], *earlier.timeline[place + 1 :])
    assert not holds(msgspec.structs.replace(earlier, timeline=rest), earlier)


@pytest.mark.parametrize(
    "fields",
    [
        {"summary": None},
        {"extra": {}},
        {"extra": {"branch": "other"}},
        {"started_at": at(1)},
        {"ended_at": at(19)},
        {"native_id": "0000002b"},
        {"kind": "fork"},
        {"project": Project("/home/ann/dev/other", None, None, "recorded")},
        {"project": Project(None, None, "9fb7", "none")},
    ],
)
def test_what_is_said_of_the_session_is_compared(fields: dict[str, Any]) -> None:
    earlier = conversation()
    assert not holds(msgspec.structs.replace(earlier, **fields), earlier)


def test_a_version_that_went_on_holds_the_earlier_one() -> None:
    later = msgspec.structs.replace(conversation(user(9, "And low tide?")), ended_at=at(30))
    assert holds(later, conversation())
    assert not holds(conversation(), later)


def test_a_text_may_grow_and_a_call_may_end() -> None:
    earlier = session(
        agent(1, Text("At"), call("glob", status="unknown", native_status="executing", at=at(1)), usage=None)
    )
    later = session(
        agent(1, Text("At six."), call("glob", native_status="success", result="tides.py", at=at(2)))
    )
    assert holds(later, earlier)
    assert not holds(earlier, later)


def test_an_estimate_of_tokens_is_no_record_of_them() -> None:
    def spent(figure: int, *, is_estimated: bool) -> Session:
        usage = Usage("r1", figure, 0, 0, 1, 0, 0, figure + 1, estimated=is_estimated)
        return session(agent(1, Text("At six."), usage=usage))

    assert holds(spent(1000, is_estimated=False), spent(8, is_estimated=True))
    assert not holds(spent(8, is_estimated=True), spent(1000, is_estimated=False))


def test_two_equal_entries_without_ids_are_two() -> None:
    twice = session(user(1, "again", id=None), user(2, "again", id=None, at=at(1)))
    once = session(user(1, "again", id=None))
    assert holds(twice, once)
    assert not holds(once, twice)


def test_several_versions_hold_what_one_alone_does_not() -> None:
    first, second = user(1, "neap"), user(2, "spring")
    versions = LaterVersions([session(first)])
    assert not versions.contain(session(first, second))
    versions.add([session(second)])
    assert versions.contain(session(first, second))


def test_times_from_the_file_are_not_compared() -> None:
    earlier = session(user(1, "neap", id=None), are_times_derived=True)
    later = session(user(5, "neap", id=None), are_times_derived=True, started_at=at(5))
    assert holds(later, earlier)


def test_what_is_too_deep_to_compare_is_kept() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    other: list[Any] = []
    for _ in range(100_000):
        other = [other]
    earlier, later = (session(agent(1, Opaque({"value": value}))) for value in (deep, other))
    assert not holds(later, earlier)


def test_calls_and_messages_of_these_types_are_all_there_are() -> None:
    """The field-by-field test above covers every type of entry and part."""
    types = {type(entry) for entry in conversation().timeline}
    parts = {
        type(part) for entry in conversation().timeline if isinstance(entry, Message) for part in entry.parts
    }
    assert types == {Message, Event}
    assert parts == {Text, Thinking, ToolCall, Attachment, Context, Opaque}


def test_entries_without_ids_in_another_order_are_compared_in_linear_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared, whole = list[None](), containment._contains_entry  # noqa: SLF001 - the step that is counted

    def counting(*arguments: Any) -> bool:
        compared.append(None)
        return whole(*arguments)

    monkeypatch.setattr(containment, "_contains_entry", counting)
    counts = []
    for size in (200, 400):
        timeline = tuple(Event(None, "notice", None, "live", "", extra={"number": n}) for n in range(size))
        earlier = session(*timeline)
        later = session(*timeline[::-1])
        compared.clear()
        assert not LaterVersions([later]).contain(earlier)
        counts.append(len(compared))
    assert counts[1] <= 2 * counts[0]

"""`toolUseResult`, by its shape: what Claude Code showed its user of a result."""

from collections.abc import Iterator
from typing import Any

import msgspec

from retold.agents.claude.raw import Record
from retold.model.session import AgentDisplay, DiffDisplay, Display, Todo, TodosDisplay


class Shown(msgspec.Struct, frozen=True, gc=False):
    """What a twin says beyond the result itself."""

    display: Display | None = None
    agent_id: str | None = None
    was_interrupted: bool = False
    moved_to: str | None = None
    """The file to which a large output was moved."""
    extra: Any = None
    """What no field of ours tells."""


NOTHING = Shown()
_OUTPUTS = ("stdout", "stderr", "content", "result")
"""Where a piece of what the model got may stand."""
_HUNK = ("oldStart", "oldLines", "newStart", "newLines", "lines")


def shown(twin: Any, text: str | None, arguments: Record) -> Shown:
    """Return what a twin adds to the text of the result and to what the call was given; repetitions are left out."""
    if type(twin) is not dict:
        is_known = _says_nothing(twin) or _repeats(twin, text, arguments, is_output=True)
        return NOTHING if is_known else Shown(extra=twin)
    beyond = {
        key: value
        for key, value in twin.items()
        if value != text
        and value is not False
        and not _says_nothing(value)
        and not _repeats(value, text, arguments, is_output=key in _OUTPUTS)
    }
    if not beyond:
        return NOTHING
    if type(twin.get("structuredPatch")) is list:
        return Shown(display=_diff(twin, beyond))
    if type(twin.get("newTodos")) is list:
        return Shown(display=_todos(twin, beyond))
    agent_id, moved_to = twin.get("agentId"), twin.get("persistedOutputPath")
    display = None
    if type(agent_id) is str:
        display, beyond = _agent(twin, beyond), {}
    return Shown(
        display=display,
        agent_id=agent_id if type(agent_id) is str else None,
        was_interrupted=twin.get("interrupted") is True,
        moved_to=moved_to if type(moved_to) is str else None,
        extra=beyond or None,
    )


def _says_nothing(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def _repeats(value: Any, text: str | None, arguments: Record, *, is_output: bool) -> bool:
    """Tell whether a value stands elsewhere; errors stand in the twin with a word before them."""
    if value == text:
        return True
    if is_output and text is not None and type(value) is str:
        return value.strip().removeprefix("Error: ") in text
    if is_output and text is not None and type(value) is list:
        return all(_is_text_in(item, text) for item in value)
    return value in arguments.values()


def _is_text_in(item: Any, text: str) -> bool:
    match item:
        case {"type": "text", "text": str(said), **rest}:
            return not rest and said in text
        case _:
            return False


def answers(twin: Any) -> str | None:
    """Return what a person answered to the model's questions, and noted beside; None where nothing was asked."""
    match twin:
        case {"questions": _, "answers": dict(answered)}:
            notes = twin.get("annotations")
            held = [*answered.values(), *_noted(notes if type(notes) is dict else {})]
            words = [item if type(item) is str else msgspec.json.encode(item).decode() for item in held]
            return "\n".join(word for word in words if word.strip()) or None
        case _:
            return None


def _noted(annotations: Record) -> Iterator[Any]:
    return (note["notes"] for note in annotations.values() if type(note) is dict and "notes" in note)


def _diff(twin: Record, beyond: Record) -> DiffDisplay:
    """Return a file before and after; what does not fit stays beside it."""
    hunks = list(_hunks(twin["structuredPatch"]))
    if len(hunks) == len(twin["structuredPatch"]):
        beyond.pop("structuredPatch", None)
    is_new = twin.get("type") == "create"
    if is_new:
        beyond.pop("type", None)
    before = "originalFile" if "originalFile" in twin else "originalFileContents"
    path, old, new = (_taken(twin, beyond, key) for key in ("filePath", before, "content"))
    return DiffDisplay(path, "\n".join(hunks) or None, old, new, is_new or None, beyond or None)


def _taken(twin: Record, beyond: Record, key: str) -> str | None:
    """Return a text of the twin, and take it out of what is left of it."""
    value = twin.get(key)
    if type(value) is not str:
        return None
    beyond.pop(key, None)
    return value


def _hunks(patch: list[Any]) -> Iterator[str]:
    """Yield each piece of a patch in the usual form."""
    for hunk in patch:
        if type(hunk) is dict and hunk.keys() == set(_HUNK) and type(hunk["lines"]) is list:
            start, old, place, new, lines = (hunk[key] for key in _HUNK)
            yield "\n".join([f"@@ -{start},{old} +{place},{new} @@", *map(str, lines)])


def _todos(twin: Record, beyond: Record) -> TodosDisplay:
    """Return the list as it is afterwards; the call was given the same, and more of each."""
    todos = [todo for todo in twin["newTodos"] if type(todo) is dict and type(todo.get("content")) is str]
    if len(todos) == len(twin["newTodos"]) and all(todo.keys() <= {"content", "status"} for todo in todos):
        beyond.pop("newTodos", None)
    told = [
        Todo(todo["content"], todo["status"] if type(todo.get("status")) is str else None) for todo in todos
    ]
    return TodosDisplay(tuple(told), beyond or None)


def _agent(twin: Record, beyond: Record) -> AgentDisplay:
    """Return how a subagent went; its result is that of the call."""
    beyond.pop("agentId", None)
    name, state = (_taken(twin, beyond, key) for key in ("agentType", "status"))
    return AgentDisplay(name, state, extra=beyond or None)

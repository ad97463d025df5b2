"""`resultDisplay`: what the CLI showed of a tool's result, in the shapes that all versions wrote."""

from collections.abc import Callable
from typing import Any

from retold.agents.gemini.raw import Record
from retold.model.session import (
    AgentDisplay,
    DiffDisplay,
    Display,
    FilesDisplay,
    OpaqueDisplay,
    TextDisplay,
    Todo,
    TodosDisplay,
)


def display(value: Any) -> Display | None:
    """Return the display in our shapes; what has no known shape stays as it is."""
    if type(value) is str:
        return TextDisplay(value) if value else None
    if value is None:
        return None
    if type(value) is dict:
        for key, shape in _SHAPES.items():
            if key in value:
                return shape(value) or OpaqueDisplay(value)
        return OpaqueDisplay(value)
    return (_screen(value) if type(value) is list else None) or OpaqueDisplay(value)


def _screen(lines: list[Any]) -> Display | None:
    """A terminal's screen: lines of tokens, padded with spaces on the right."""
    rows = []
    for line in lines:
        if type(line) is not list:
            return None
        tokens = [token["text"] for token in line if type(token) is dict and type(token.get("text")) is str]
        if len(tokens) != len(line):
            return None
        rows.append("".join(tokens).rstrip())
    return TextDisplay("\n".join(rows))


def _diff(value: Record) -> Display | None:
    path = value.get("filePath", value.get("fileName"))
    texts = (path, value.get("fileDiff"), value.get("originalContent"), value.get("newContent"))
    is_new = value.get("isNewFile")
    if not {type(text) for text in texts} <= _TEXT_OR_NONE or type(is_new) not in (bool, type(None)):
        return None
    known = ("fileDiff", "filePath", "originalContent", "newContent", "isNewFile")
    return DiffDisplay(*texts, is_new, _rest(value, known))


def _todos(value: Record) -> Display | None:
    todos = value["todos"]
    if type(todos) is not list or not all(
        type(todo) is dict
        and todo.keys() == {"description", "status"}
        and all(type(v) is str for v in todo.values())
        for todo in todos
    ):
        return None
    return TodosDisplay(
        tuple(Todo(todo["description"], todo["status"]) for todo in todos), _rest(value, ("todos",))
    )


def _progress(value: Record) -> Display | None:
    texts = (value.get("agentName"), value.get("state"), value.get("result"))
    activity = value.get("recentActivity", [])
    if not all(text is None or type(text) is str for text in texts) or not _is_list_of(dict, activity):
        return None
    known = ("isSubagentProgress", "agentName", "state", "result", "recentActivity")
    return AgentDisplay(*texts, tuple(activity), _rest(value, known))


def _summary(value: Record) -> Display | None:
    summary, files, matches = value["summary"], value.get("files", []), value.get("matches", [])
    if type(summary) is not str or not _is_list_of(str, files) or not _is_list_of(dict, matches):
        return None
    return FilesDisplay(summary, tuple(files), tuple(matches), _rest(value, ("summary", "files", "matches")))


def _is_list_of(kind: type, value: Any) -> bool:
    return type(value) is list and all(type(item) is kind for item in value)


def _rest(value: Record, known: tuple[str, ...]) -> Record | None:
    return {key: kept for key, kept in value.items() if key not in known} or None


_TEXT_OR_NONE = {str, type(None)}
_SHAPES: dict[str, Callable[[Record], Display | None]] = {
    "fileDiff": _diff,
    "todos": _todos,
    "isSubagentProgress": _progress,
    "summary": _summary,
}

"""Lists of things to do, as agents keep them with a tool: what is left of the last one."""

import re
from collections.abc import Iterator
from typing import Any

from retold.analysis.prose import clipped
from retold.model.session import TodosDisplay, ToolCall

_DONE = frozenset(("completed", "complete", "done", "cancelled", "canceled", "deleted", "closed", "skipped"))
_LISTS = ("todos", "plan", "tasks", "items")
_TEXTS = ("content", "description", "step", "subject", "text", "title", "task")
_NUMBER = re.compile(r"#(\w+)")
_TEXT = 160
_MOST = 50


class Todos:
    """What is to be done: a list that is given anew each time, or single tasks that are added and changed."""

    def __init__(self) -> None:
        self._listed: list[tuple[str, str]] = []
        self._tasks: dict[str, tuple[str, str]] = {}

    def take(self, call: ToolCall) -> bool:
        """Take in a call; tell whether it was about things to do."""
        if call.canonical != "planning" or call.status != "success":
            return False
        listed = _listed(call)
        if listed is not None:
            self._listed = listed
            return True
        return self._take_task(call.arguments, call.result or "")

    def _take_task(self, arguments: dict[str, Any], result: str) -> bool:
        number, subject, status = (arguments.get(name) for name in ("taskId", "subject", "status"))
        if number is None and type(subject) is str:
            told = _NUMBER.search(result)
            self._tasks[told[1] if told else str(len(self._tasks) + 1)] = (subject, "pending")
            return True
        if str(number) in self._tasks and type(status) is str:
            self._tasks[str(number)] = (self._tasks[str(number)][0], status)
            return True
        return False

    def left(self) -> tuple[str, ...]:
        """Return what is not done."""
        every = [*self._listed, *self._tasks.values()]
        return tuple(clipped(text, _TEXT) for text, status in every if status.casefold() not in _DONE)[:_MOST]


def _listed(call: ToolCall) -> list[tuple[str, str]] | None:
    if isinstance(call.display, TodosDisplay):
        return [(todo.text, todo.status or "") for todo in call.display.todos]
    found = next((call.arguments[name] for name in _LISTS if type(call.arguments.get(name)) is list), None)
    return None if found is None else list(_items(found))


def _items(found: list[Any]) -> Iterator[tuple[str, str]]:
    for item in found:
        if type(item) is dict:
            text = next((item[name] for name in _TEXTS if type(item.get(name)) is str), "")
            if text:
                yield text, str(item.get("status") or "")

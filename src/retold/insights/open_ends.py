"""Open ends of a session: unanswered words, open tasks, interruptions, errors, and failures that were never fixed."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from retold.insights.commands import call_error, error_excerpt, has_failed, short_target
from retold.insights.failures import CallFailure
from retold.insights.text import PlacedEntry, TurnPlace, clip, message_text, paragraphs, sentences
from retold.model.session import Event, Message, TodosDisplay, ToolCall, prompt_words

OpenKind = Literal["unanswered", "question", "error", "interrupted", "todos", "remaining", "failure"]
TEXT = 300
_DONE = frozenset(("completed", "complete", "done", "cancelled", "canceled", "deleted", "closed", "skipped"))
_LISTS = ("todos", "plan", "tasks", "items")
_TEXTS = ("content", "description", "step", "subject", "text", "title", "task")
_NUMBER = re.compile(r"#(\w+)")
_TASK, _MOST_TASKS, _MOST_ITEMS = 160, 50, 8
"""Characters of a task, tasks, and items of a last answer that are returned."""
_STOPPED = re.compile(r"\b(?:interrupted|cancell?ed|aborted|stopped)\b", re.IGNORECASE)
_REMAINING = re.compile(
    r"^\W*(?:(?:the )?(?:next steps?|remaining(?: (?:work|tasks?|steps?|items?))?|still (?:open|to do|missing)|left to do|to ?do|open(?: (?:points|questions|issues|items))?"
    r"|not (?:yet )?done|follow-?ups?|outstanding|what(?:'s| is) (?:left|missing|next)))\b[^:.]{0,40}(?::|\**$)",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[( |x|X)\]\s*)?(.+)$")
_QUESTION_MARKS = ("?", "\uff1f")
_LONGEST_FAREWELL = 80
_THANKS = re.compile(
    r"^/(?:quit|exit|bye|clear)\b|\b(?:thanks|thank you|thx|cheers|danke|merci|gracias|grazie|obrigad[oa]|perfect|lgtm|great|bye)\b"
    r"|ありがとう|谢谢|謝謝|감사|спасибо",
    re.IGNORECASE,
)
"""Last words that ask for nothing."""


class TodoList:
    """The tasks of a session: a list that each call replaces, or single tasks that calls add and change."""

    def __init__(self) -> None:
        self._listed: list[tuple[str, str]] = []
        self._tasks: dict[str, tuple[str, str]] = {}

    def add(self, call: ToolCall) -> bool:
        """Add a call; return whether it was about tasks."""
        if call.canonical != "planning" or call.status != "success":
            return False
        listed = _listed(call)
        if listed is not None:
            self._listed = listed
            return True
        return self._add_task(call.arguments, call.result or "")

    def _add_task(self, arguments: dict[str, Any], result: str) -> bool:
        number, subject, status = (arguments.get(name) for name in ("taskId", "subject", "status"))
        if number is None and type(subject) is str:
            match = _NUMBER.search(result)
            self._tasks[match[1] if match else str(len(self._tasks) + 1)] = (subject, "pending")
            return True
        if str(number) in self._tasks and type(status) is str:
            self._tasks[str(number)] = (self._tasks[str(number)][0], status)
            return True
        return False

    def open_tasks(self) -> tuple[str, ...]:
        """Return the tasks that are not done."""
        tasks = [*self._listed, *self._tasks.values()]
        texts = (clip(text, _TASK) for text, status in tasks if status.casefold() not in _DONE)
        return tuple(texts)[:_MOST_TASKS]


def _listed(call: ToolCall) -> list[tuple[str, str]] | None:
    if isinstance(call.display, TodosDisplay):
        return [(todo.text, todo.status or "") for todo in call.display.todos]
    found = next((call.arguments[name] for name in _LISTS if type(call.arguments.get(name)) is list), None)
    return None if found is None else list(_parse_items(found))


def _parse_items(found: list[Any]) -> Iterator[tuple[str, str]]:
    for item in found:
        if type(item) is dict:
            text = next((item[name] for name in _TEXTS if type(item.get(name)) is str), "")
            if text:
                yield text, str(item.get("status") or "")


class OpenEnd(msgspec.Struct, frozen=True, kw_only=True):
    """An open end of a session."""

    kind: OpenKind
    """`unanswered`: the last words of a person; `question`: the agent's last words are one; `error`: the session ended with
    one; `interrupted`: it was interrupted; `todos`: open tasks; `remaining`: the last answer lists what is left; `failure`: a
    failed call that never succeeded later."""
    place: TurnPlace
    text: str
    items: tuple[str, ...] = ()
    """The open tasks, or the items that are left."""


class OpenEndCollector:
    """Collects the open ends of a session."""

    def __init__(self) -> None:
        self._todos = TodoList()
        self._todos_place: TurnPlace | None = None
        self._last: PlacedEntry | None = None
        """The last message of a person or the agent."""
        self._answer: PlacedEntry | None = None
        """The last message of the agent with words."""
        self._events: list[PlacedEntry] = []
        """The events since the last message."""

    def add(self, one: PlacedEntry) -> None:
        """Add the next entry; a rewound one leaves nothing open."""
        if one.is_rewound:
            return
        if isinstance(one.entry, Event):
            if one.entry.kind in ("error", "warning", "info") and one.entry.text.strip():
                self._events.append(one)
            return
        message = one.entry
        if prompt_words(message) is None and message.role != "assistant":
            return
        self._last, self._events = one, []
        if message.role == "assistant" and message_text(message):
            self._answer = one
        for part in message.parts:
            if isinstance(part, ToolCall) and self._todos.add(part):
                self._todos_place = one.place

    def open_ends(self, failures: Iterable[CallFailure]) -> tuple[OpenEnd, ...]:
        """Return the open ends, with the failures among those of the session that were never fixed, each once."""
        ends = [*self._end(), *self._remaining_work()]
        errors = {end.place for end in ends if end.kind == "error"}
        # Of several failures with one target, the last counts.
        unfixed = {(one.tool, one.target): one for one in failures if one.is_open}.values()
        return (*ends, *(_failure_end(one) for one in unfixed if one.place not in errors))

    def _end(self) -> Iterator[OpenEnd]:
        """Yield how the session ended, if that leaves something open."""
        if self._last is None:
            return
        place, message = self._last.place, self._last.entry
        error = next((one for one in reversed(self._events) if _event(one).kind == "error"), None)
        stop = next((one for one in self._events if _STOPPED.search(_event(one).text)), None)
        words = prompt_words(message)
        if error is not None:
            texts = [*([] if words is None else [clip(words, TEXT)]), _error_line(_event(error).text)]
            yield OpenEnd(kind="error", place=error.place, text=": ".join(texts))
        elif words is not None:
            if not _is_farewell(words):
                kind: OpenKind = "unanswered" if stop is None else "interrupted"
                yield OpenEnd(kind=kind, place=place, text=clip(words, TEXT))
        elif isinstance(message, Message):
            yield from _end_of_answer(place, message, stop)

    def _remaining_work(self) -> Iterator[OpenEnd]:
        """Yield open tasks, and what the last answer says is left."""
        tasks = self._todos.open_tasks()
        if tasks and self._todos_place is not None:
            yield OpenEnd(kind="todos", place=self._todos_place, text="", items=tasks)
        is_last = self._answer is not None and self._answer is self._last
        if self._answer is not None and is_last and isinstance(self._answer.entry, Message):
            items = tuple(_remaining_items(message_text(self._answer.entry)))[:_MOST_ITEMS]
            if items:
                yield OpenEnd(kind="remaining", place=self._answer.place, text="", items=items)


def _end_of_answer(place: TurnPlace, message: Message, stop: PlacedEntry | None) -> Iterator[OpenEnd]:
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    cancelled = next((call for call in calls if call.status == "cancelled"), None)
    failed = next((call for call in calls if has_failed(call)), None)
    words = message_text(message)
    if stop is not None or cancelled is not None:
        target = short_target(cancelled) if cancelled is not None else clip(words, TEXT)
        yield OpenEnd(kind="interrupted", place=place, text=target)
    elif failed is not None:
        yield OpenEnd(kind="error", place=place, text=_error_line(call_error(failed)) or short_target(failed))
    elif calls and not words:  # the agent never commented the results
        yield OpenEnd(kind="interrupted", place=place, text=short_target(calls[-1]))
    elif question := _last_question(words):
        yield OpenEnd(kind="question", place=place, text=clip(question, TEXT))


def _last_question(words: str) -> str:
    """Return the last sentence if it is a question."""
    found = [sentence for paragraph in paragraphs(words) for sentence in sentences(paragraph)]
    return found[-1] if found and found[-1].rstrip("*_)\"' ").endswith(_QUESTION_MARKS) else ""


def _remaining_items(words: str) -> Iterator[str]:
    """Yield the items of lists under a heading such as "next steps", and unticked boxes."""
    is_listed = False
    for line in words.splitlines():
        bullet = _BULLET.match(line)
        if bullet and (bullet[1] == " " or (is_listed and bullet[1] is None)):
            yield clip(" ".join(sentences(bullet[2])) or bullet[2], TEXT)
        elif not bullet and line.strip():
            is_listed = _REMAINING.match(line) is not None


def _failure_end(failure: CallFailure) -> OpenEnd:
    text = f"{failure.target}: {_error_line(failure.error)}" if failure.error else failure.target
    return OpenEnd(kind="failure", place=failure.place, text=clip(text or failure.tool or "", TEXT))


def _event(one: PlacedEntry) -> Event:
    assert isinstance(one.entry, Event)  # noqa: S101 - only events are added there
    return one.entry


def _is_farewell(words: str) -> bool:
    """Return whether words need no answer."""
    is_short = len(words) <= _LONGEST_FAREWELL and not words.rstrip().endswith(_QUESTION_MARKS)
    return is_short and (_THANKS.search(words) is not None or not any(map(str.isalnum, words)))


def _error_line(text: str) -> str:
    return clip(error_excerpt(text).partition("\n")[0] or text, TEXT)

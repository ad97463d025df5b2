"""What a session left open: questions that nobody answered, things to do, what broke off, what was never mended."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from retold.insights.commands import error_lines, is_failed, target, telling_lines
from retold.insights.failures import CallFailure
from retold.insights.text import PlacedEntry, TurnPlace, clipped, paragraphs, placed, sentences, words_said
from retold.model.session import Entry, Event, Message, TodosDisplay, ToolCall, words_of

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


OpenKind = Literal["unanswered", "question", "error", "interrupted", "todos", "remaining", "failure"]
TEXT = 300
_MOST_ITEMS = 8
_STOPPED = re.compile(r"\b(?:interrupted|cancell?ed|aborted|stopped)\b", re.IGNORECASE)
_REMAINING = re.compile(
    r"^\W*(?:(?:the )?(?:next steps?|remaining(?: (?:work|tasks?|steps?|items?))?|still (?:open|to do|missing)|left to do|to ?do|open(?: (?:points|questions|issues|items))?"
    r"|not (?:yet )?done|follow-?ups?|outstanding|what(?:'s| is) (?:left|missing|next)))\b[^:.]{0,40}(?::|\**$)",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[( |x|X)\]\s*)?(.+)$")
_QUESTIONS = ("?", "\uff1f")
_FAREWELL = 80
_THANKS = re.compile(
    r"^/(?:quit|exit|bye|clear)\b|\b(?:thanks|thank you|thx|cheers|danke|merci|gracias|grazie|obrigad[oa]|perfect|lgtm|great|bye)\b"
    r"|ありがとう|谢谢|謝謝|감사|спасибо",
    re.IGNORECASE,
)
"""Last words that ask for nothing."""


class OpenEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was left open."""

    kind: OpenKind
    """`unanswered`: a person's last words; `question`: the agent's last words ask something; `error`: it ended on one;
    `interrupted`: it was broken off; `todos`: things to do that are not done; `remaining`: the last answer says what is left;
    `failure`: a call that failed and never worked after."""
    place: TurnPlace
    text: str
    items: tuple[str, ...] = ()
    """What is left to be done, one by one."""


class OpenEnds:
    """How a session stands, as far as it was read."""

    def __init__(self) -> None:
        self._todos = Todos()
        self._todos_place: TurnPlace | None = None
        self._last: PlacedEntry | None = None
        """The last thing that somebody said or did."""
        self._answer: PlacedEntry | None = None
        """The last message of the agent in words."""
        self._events: list[PlacedEntry] = []
        """What happened since."""

    def take(self, one: PlacedEntry) -> None:
        """Take in the next entry; what was taken back leaves nothing open."""
        if one.is_taken_back:
            return
        if isinstance(one.entry, Event):
            if one.entry.kind in ("error", "warning", "info") and one.entry.text.strip():
                self._events.append(one)
            return
        message = one.entry
        is_said = words_of(message) is not None or message.role == "assistant"
        if not is_said:
            return
        self._last, self._events = one, []
        if message.role == "assistant" and words_said(message):
            self._answer = one
        for part in message.parts:
            if isinstance(part, ToolCall) and self._todos.take(part):
                self._todos_place = one.place

    def found(self, failed: Iterable[CallFailure] = ()) -> tuple[OpenEnd, ...]:
        """Return what is open, with what of all that failed never worked again, each thing once."""
        ends = [*self._end(), *self._left()]
        told = {end.place for end in ends if end.kind == "error"}
        return (*ends, *(_unmended(one) for one in _each_once(failed) if one.place not in told))

    def _end(self) -> Iterator[OpenEnd]:
        """Yield how the session broke off, if it did."""
        if self._last is None:
            return
        place, message = self._last.place, self._last.entry
        error = next((one for one in reversed(self._events) if _event(one).kind == "error"), None)
        stop = next((one for one in self._events if _STOPPED.search(_event(one).text)), None)
        words = words_of(message)
        if error is not None:
            told = [*([] if words is None else [clipped(words, TEXT)]), _line(_event(error).text)]
            yield OpenEnd(kind="error", place=error.place, text=": ".join(told))
        elif words is not None:
            if not _is_farewell(words):
                kind: OpenKind = "unanswered" if stop is None else "interrupted"
                yield OpenEnd(kind=kind, place=place, text=clipped(words, TEXT))
        elif isinstance(message, Message):
            yield from _of_answer(place, message, stop)

    def _left(self) -> Iterator[OpenEnd]:
        """Yield what is still to be done."""
        left = self._todos.left()
        if left and self._todos_place is not None:
            yield OpenEnd(kind="todos", place=self._todos_place, text="", items=left)
        is_last_word = self._answer is not None and self._answer is self._last
        if self._answer is not None and is_last_word and isinstance(self._answer.entry, Message):
            items = tuple(_remaining(words_said(self._answer.entry)))[:_MOST_ITEMS]
            if items:
                yield OpenEnd(kind="remaining", place=self._answer.place, text="", items=items)


def open_ends(entries: Iterable[Entry], failed: Iterable[CallFailure] = ()) -> tuple[OpenEnd, ...]:
    """Return what a timeline left open; what failed in it may be given."""
    found = OpenEnds()
    for one in placed(entries):
        found.take(one)
    return found.found(failed)


def _of_answer(place: TurnPlace, message: Message, stop: PlacedEntry | None) -> Iterator[OpenEnd]:
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    stopped = next((call for call in calls if call.status == "cancelled"), None)
    failed = next((call for call in calls if is_failed(call)), None)
    words = words_said(message)
    if stop is not None or stopped is not None:
        about = target(stopped) if stopped is not None else clipped(words, TEXT)
        yield OpenEnd(kind="interrupted", place=place, text=about)
    elif failed is not None:
        yield OpenEnd(kind="error", place=place, text=_line(error_lines(failed)) or target(failed))
    elif calls and not words:  # it never came to say what came of them
        yield OpenEnd(kind="interrupted", place=place, text=target(calls[-1]))
    elif question := _question(words):
        yield OpenEnd(kind="question", place=place, text=clipped(question, TEXT))


def _question(words: str) -> str:
    """Return the question with which words end, if they do."""
    said = [sentence for paragraph in paragraphs(words) for sentence in sentences(paragraph)]
    return said[-1] if said and said[-1].rstrip("*_)\"' ").endswith(_QUESTIONS) else ""


def _remaining(words: str) -> Iterator[str]:
    """Yield the items of lists that say what is left, and boxes that are not ticked."""
    is_listed = False
    for line in words.splitlines():
        bullet = _BULLET.match(line)
        if bullet and (bullet[1] == " " or (is_listed and bullet[1] is None)):
            yield clipped(" ".join(sentences(bullet[2])) or bullet[2], TEXT)
        elif not bullet and line.strip():
            is_listed = _REMAINING.match(line) is not None


def _each_once(failed: Iterable[CallFailure]) -> Iterator[CallFailure]:
    """Yield what is not mended, each target when it failed last."""
    yield from {(one.tool, one.target): one for one in failed if one.is_open}.values()


def _unmended(failure: CallFailure) -> OpenEnd:
    told = f"{failure.target}: {_line(failure.error)}" if failure.error else failure.target
    return OpenEnd(kind="failure", place=failure.place, text=clipped(told or failure.tool or "", TEXT))


def _event(one: PlacedEntry) -> Event:
    assert isinstance(one.entry, Event)  # noqa: S101 - nothing else is put there
    return one.entry


def _is_farewell(words: str) -> bool:
    """Tell whether nobody waits for an answer to these words."""
    is_short = len(words) <= _FAREWELL and not words.rstrip().endswith(_QUESTIONS)
    return is_short and (_THANKS.search(words) is not None or not any(map(str.isalnum, words)))


def _line(text: str) -> str:
    return clipped(telling_lines(text).partition("\n")[0] or text, TEXT)

"""The timeline of a story: plays its beats, with times and tokens; and the setting and format of demo files."""

import hashlib
import json
import random
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from retold.demo.story import (
    LOOKING,
    Ask,
    Beat,
    Compact,
    Later,
    Notice,
    Rewind,
    Save,
    Say,
    Shell,
    StoryCall,
    Think,
)

_ALPHABET = string.ascii_letters + string.digits


class Dice:
    """Random values that are the same for the same words."""

    def __init__(self, *words: str) -> None:
        self._random = random.Random("/".join(words))  # noqa: S311 - nothing here is a secret

    def between(self, low: int, high: int) -> int:
        """Return a number from low to high."""
        return self._random.randint(low, high)

    def hex(self, digits: int) -> str:
        """Return a text of hexadecimal digits."""
        return f"{self._random.getrandbits(digits * 4):0{digits}x}"

    def name(self, length: int) -> str:
        """Return a text of letters and digits."""
        return "".join(self._random.choices(_ALPHABET, k=length))

    def uuid(self) -> str:
        """Return a UUID of version 4."""
        digits = self.hex(32)
        variant = "89ab"[self._random.getrandbits(2)]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def uuid7(self, at: datetime) -> str:
        """Return a UUID of version 7: it begins with the time."""
        time, rest = f"{int(at.timestamp() * 1000):012x}", self.uuid()
        return f"{time[:8]}-{time[8:]}-7{rest[15:]}"


_BYTES_PER_TOKEN = 3.7
"""Bytes of prose and code in a token, on average."""
_SUBAGENT = 4_200


class StoryUsage(msgspec.Struct, frozen=True):
    """The tokens of a response: the whole prompt, the cached part of it, the answer, and the thoughts."""

    input: int
    cached: int
    output: int
    reasoning: int

    @property
    def total(self) -> int:
        """All billed tokens."""
        return self.input + self.output + self.reasoning


class PlayedCall(msgspec.Struct, frozen=True):
    """A call with its times, and the moments of its subagent."""

    call: StoryCall
    at: datetime
    ended_at: datetime
    inner: "tuple[Moment, ...]" = ()


class StoryAnswer(msgspec.Struct, frozen=True):
    """One response of the model."""

    thoughts: tuple[Think, ...] = ()
    text: str = ""
    calls: tuple[PlayedCall, ...] = ()
    spent: StoryUsage = StoryUsage(0, 0, 0, 0)


Event = Ask | StoryAnswer | Notice | Shell | Rewind | Compact | Save | Later


class Moment(msgspec.Struct, frozen=True):
    """An event with its times."""

    at: datetime
    ended_at: datetime
    event: Event


class _Response(msgspec.Struct):
    """A response while its beats are collected."""

    thoughts: list[Think] = []
    text: str = ""
    calls: list[StoryCall] = []

    def takes(self, beat: Think | Say | StoryCall) -> bool:
        """Return whether a beat can belong to this response: results and changes end it."""
        if isinstance(beat, StoryCall):
            return all(call.kind in LOOKING for call in (*self.calls, *([beat] if self.calls else [])))
        return not self.calls and not self.text

    def add(self, beat: Think | Say | StoryCall) -> None:
        match beat:
            case Think():
                self.thoughts.append(beat)
            case Say(text):
                self.text = text
            case StoryCall():
                self.calls.append(beat)


class Stage:
    """A conversation while it is played: the clock, and the tokens of its context."""

    def __init__(self, at: datetime, instructions: int, dice: Dice) -> None:
        self.at, self.dice = at, dice
        self.instructions = self.context = instructions
        self.cached = 0

    def play(self, beats: Sequence[Beat]) -> Iterator[Moment]:
        """Yield the moments of beats."""
        for step in _steps(beats):
            began_at = self._wait(step)
            event: Event
            if isinstance(step, _Response):
                event = self._answer(step)
            else:
                event = step
                self._update_context(step)
            yield Moment(began_at, self.at, event)

    def _wait(self, step: "Event | _Response") -> datetime:
        """Advance the clock by the time that the person or the model needs; return the begin of the step."""
        seconds = self.dice.between(2, 9) if isinstance(step, _Response) else self.dice.between(25, 210)
        if isinstance(step, Later):
            seconds += step.hours * 3600
        if isinstance(step, Notice | Rewind | Save):
            seconds = self.dice.between(3, 20)
        self.at += timedelta(seconds=seconds, milliseconds=self.dice.between(0, 999))
        return self.at

    def _update_context(self, event: Event) -> None:
        """Change the tokens that the model will read next time."""
        match event:
            case Ask(text):
                self.context += _tokens(text)
            case Shell(command, output):
                self.context += _tokens(command + output) + 20
            case Compact(summary):
                self.context, self.cached = self.instructions + _tokens(summary), 0
            case Later():
                self.cached = 0  # the cache expires

    def _answer(self, response: _Response) -> StoryAnswer:
        output = _tokens(response.text) + sum(_call_tokens(call) for call in response.calls) + 8
        thought = sum(_tokens(thought.subject + thought.text) for thought in response.thoughts)
        reasoning = thought * self.dice.between(2, 5) if thought else 0
        spent = StoryUsage(self.context, self.cached, output, reasoning)
        self.cached = self.context - self.context % 128
        self.context += output
        self.at += timedelta(milliseconds=300 + 11 * (output + reasoning))
        return StoryAnswer(
            tuple(response.thoughts), response.text, tuple(map(self._act, response.calls)), spent
        )

    def _act(self, call: StoryCall) -> PlayedCall:
        began_at = self.at
        inner: tuple[Moment, ...] = ()
        if call.beats:
            played = Stage(self.at, _SUBAGENT, self.dice)
            inner = tuple(played.play(call.beats))
            self.at = played.at
        slowest = 14_000 if call.kind in {"run", "web", "fetch"} else 400
        self.at += timedelta(milliseconds=self.dice.between(20, slowest))
        # Scripts have extracts of files and outputs; models read all of them.
        unseen = self.dice.between(100, 2_400) if call.kind in LOOKING or call.kind == "run" else 30
        self.context += _tokens(call.body) + unseen
        return PlayedCall(call, began_at, self.at, inner)


def _steps(beats: Sequence[Beat]) -> Iterator[Event | _Response]:
    """Yield the beats, with those of one response together."""
    response = None
    for beat in beats:
        if not isinstance(beat, Think | Say | StoryCall):
            if response is not None:
                yield response
            response = None
            yield beat
            continue
        if response is not None and not response.takes(beat):
            yield response
            response = None
        response = response or _Response()
        response.add(beat)
    if response is not None:
        yield response


def final_report(played: PlayedCall) -> str:
    """Return the last answer of a subagent."""
    answers = [moment.event.text for moment in played.inner if isinstance(moment.event, StoryAnswer)]
    return answers[-1] if answers else played.call.body


def _tokens(text: str) -> int:
    return round(len(text.encode()) / _BYTES_PER_TOKEN)


def _call_tokens(call: StoryCall) -> int:
    """Return the output tokens of a call."""
    return 24 + _tokens(call.what) + (_tokens(call.body) if call.kind in {"edit", "write"} else 0)


PROJECTS = {
    "crumb-orders": "Orders for Crumb & Co., a bakery: a small web app.",
    "hearth-sensor": "Firmware of the temperature sensors in the bakery's ovens.",
    "ladle": "A library that reads recipes.",
    "mira-notes": "A static site: notes on baking and programming.",
    "harbour": "Scripts that set up and back up two small servers.",
}
VERSIONS = {"claude": "2.1.100", "codex": "0.148.0", "gemini": "0.61.0"}
"""The versions whose files are imitated; older sessions of Gemini CLI imitate 0.38.2 and 0.28.2."""
INSTRUCTIONS = {"claude": 16_400, "codex": 8_900, "gemini": 9_700, "subagent": 4_200}
"""Tokens of the instructions of each agent."""


class StorySetting(msgspec.Struct, frozen=True):
    """The folder of the demo and the current time."""

    folder: Path
    now: datetime

    @property
    def home(self) -> Path:
        """The home of the person."""
        return self.folder / "home"

    def root(self, project: str) -> str:
        """Return the root of a project."""
        return str(self.home / "code" / project)

    def project_hash(self, project: str) -> str:
        """Return the hash by which Gemini CLI names a project."""
        return hashlib.sha256(self.root(project).encode()).hexdigest()

    def claude_name(self, project: str) -> str:
        """Return the name of a project's folder in Claude Code."""
        return re.sub(r"[^a-zA-Z0-9]", "-", self.root(project))

    def start(self, when: str) -> datetime:
        """Return the time that a script gives: `18 09:12` is a time of day some days ago, `3h` some hours ago."""
        if when.endswith("h"):
            return self.now - timedelta(hours=int(when[:-1]))
        days, time = when.split()
        hour, minute = map(int, time.split(":"))
        day = self.now - timedelta(days=int(days))
        return day.replace(hour=hour, minute=minute, second=0, microsecond=0)


class File(msgspec.Struct, frozen=True):
    """A file to write: its path in the home, its content, and the time of its last change."""

    path: str
    text: str
    at: datetime


Json = dict[str, Any]


def format_time(at: datetime) -> str:
    """Return a time as ISO 8601 with milliseconds."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def format_line(record: Json) -> str:
    """Return a record as a line of JSON."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def format_lines(records: Iterable[Json]) -> str:
    """Return records as lines of JSON."""
    return "".join(map(format_line, records))


def format_document(value: object) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)

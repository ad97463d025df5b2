"""Reads the two lists that Codex keeps of all threads: every prompt typed in its terminal, and the names of threads."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from retold.agents.codex.raw import Form, Record
from retold.agents.protocol import Reading, Source, source_file
from retold.model.builder import Draft
from retold.model.problem import Problem, problem
from retold.model.serialization import short_repr
from retold.model.session import Coverage, Entry, Event, Message, Opaque, Project, Text
from retold.reading.diagnostics import ReaderNotes
from retold.reading.json_decode import text_or_none
from retold.reading.jsonl import JsonLine, LineFile, decode_line, open_lines

FORMATS: dict[str, str] = {"history": "codex-history", "index": "codex-index"}


class ThreadListing(msgspec.Struct, frozen=True):
    """The lines about one thread in a list."""

    lines: tuple[JsonLine, ...]

    @property
    def name(self) -> str | None:
        """The last name of the thread."""
        names = [text_or_none(line.value.get("thread_name")) for line in self.lines]
        return next((name for name in reversed(names) if name is not None), None)


def read_list(source: Source, form: Form) -> Sequence[Reading] | Problem:
    """Return one reading for each thread in a list."""
    file = open_lines(source.path, disk=source.disk)
    if isinstance(file, Problem):
        return file
    with file:
        threads, problems = _by_thread(source, file, "session_id" if form == "history" else "id")
    name, size, at = FORMATS[form], file.size, file.modified_at
    return tuple(
        Reading(source, name, thread, size, at, ThreadListing(tuple(lines)), () if place else tuple(problems))
        for place, (thread, lines) in enumerate(threads.items())
    )


def _by_thread(source: Source, file: LineFile, key: str) -> tuple[dict[str, list[JsonLine]], list[Problem]]:
    threads: dict[str, list[JsonLine]] = defaultdict(list)
    problems: list[Problem] = []
    for number, raw, is_whole in file.pieces():
        for line in decode_line(raw, number, source.display_path, is_whole=is_whole):
            if isinstance(line, Problem):
                problems.append(line)
            elif (thread := _thread(line.value, key)) is None:
                problems.append(
                    problem("unknown-record", short_repr(line.value), source.display_path, number)
                )
            else:
                threads[thread].append(line)
    return threads, problems


def _thread(value: Any, key: str) -> str | None:
    return text_or_none(value.get(key)) if type(value) is dict else None


def thread_name(readings: Sequence[Reading]) -> str | None:
    """Return the name of a thread in the lists."""
    return next((reading.state.name for reading in readings if reading.state.name is not None), None)


def make_lost_draft(readings: Sequence[Reading]) -> Draft:
    """Return the draft of a thread without a rollout."""
    first = readings[0]
    notes = ReaderNotes(first.source.display_path)
    timeline = tuple(_entries(readings, notes))
    known = sorted(entry.at for entry in timeline if entry.at is not None)
    return Draft(
        key=f"codex:{first.native_id}",
        agent="codex",
        native_id=first.native_id,
        kind="prompts-only",
        project=Project(None, None, None, "none"),
        summary=thread_name(readings),
        started_at=known[0] if known else first.modified_at,
        ended_at=known[-1] if known else first.modified_at,
        are_times_derived=not known,
        status="interrupted",
        sources=tuple(map(source_file, readings)),
        coverage=Coverage(sum(len(reading.state.lines) for reading in readings), notes.opaque),
        problems=(*(problem for reading in readings for problem in reading.problems), *notes.problems),
        full=timeline,
        active=timeline,
    )


def _entries(readings: Sequence[Reading], notes: ReaderNotes) -> Iterator[Entry]:
    """Yield each prompt and each name once: two homes may hold the same list."""
    seen: set[str] = set()
    for reading in readings:
        for line in reading.state.lines:
            notes.place = (line.number, -1)
            entry, name = _entry(line.value, notes), repr(line.value)
            if name not in seen:
                seen.add(name)
                yield entry


def _entry(record: Record, notes: ReaderNotes) -> Entry:
    text, name = record.get("text"), record.get("thread_name")
    if type(text) is str:
        at = notes.parse_time(record.get("ts"))
        return Message(None, "user", at, "live", text.strip() or None, None, None, (Text(text),))
    at = notes.parse_time(record.get("updated_at"))
    if type(name) is str:
        return Event(None, "notice", at, "live", name)
    notes.add_opaque("unexpected-shape", "neither a prompt nor a name")
    return Event(None, "notice", at, "live", "", Opaque(record))

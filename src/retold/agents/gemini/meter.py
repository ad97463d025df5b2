"""What sessions took, counted without reading what was said in them.

Only files in which everything that bears on a count is plain: lines and messages that have an id each, versions of a
message that agree, times in UTC. What is not is left to `read` and `join`, which weigh whole records.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET

from retold.agents.gemini.counted import File
from retold.agents.gemini.counts import (
    TokensRecord,
    decode_document,
    decode_line,
    decode_said,
    decode_spoken,
)
from retold.agents.gemini.groups import agent_id, parent_id
from retold.agents.gemini.raw import RESPONSE_SUFFIX, RESULTS_SUFFIX
from retold.agents.protocol import Source
from retold.model.metered import Metered, Unsure
from retold.model.problem import Problem
from retold.model.project import Project
from retold.model.request import Figures, Request, micros
from retold.reading.files import read_bytes
from retold.reading.times import parse_time

_AGAIN = (RESPONSE_SUFFIX, RESULTS_SUFFIX)
_MESSAGE = b'{"id":"'
"""How the CLI begins a message; whatever else begins so is decoded as one too."""


def meter(sources: Sequence[Source]) -> Sequence[Metered] | None:
    """Return what the conversations of one cluster took; None where only reading all of it tells."""
    try:
        groups: dict[str, list[File]] = defaultdict(list)
        for source in sources:
            file = _file(source)
            groups[file.group].append(file)
        found = [_conversation(group, files) for group, files in groups.items()]
    except (Unsure, ValueError, RecursionError):
        return None
    # A session in which nothing was spent may still have the name of another.
    return None if len(found) > 1 and not all(one.requests for one in found) else list(_related(found))


def _file(source: Source) -> File:
    """Return what is counted of a file: of JSON lines, or of a document over many lines."""
    read = read_bytes(source.path, source.disk)
    if isinstance(read, Problem) or read.problems:
        raise Unsure
    data, file = read.data, File(source)
    if data.startswith(b"{\n"):
        record = decode_document(data)
        if UNSET in (record.project_hash, record.messages):
            raise Unsure
        file.tell(record, is_begin=True)
    else:
        _replay(data, file)
    return file


def _replay(data: bytes, file: File) -> None:
    if b"\r" in data or not data.endswith(b"\n"):
        raise Unsure
    view, start, end = memoryview(data), 0, data.find(b"\n")
    first = decode_line(view[:end])
    if UNSET in (first.session_id, first.project_hash, first.start_time) or first.message is not UNSET:
        raise Unsure
    put, decode, find, opens, speakers = file.put, decode_said, data.find, data.startswith, file.speakers
    while end >= 0:
        if opens(_MESSAGE, start):
            record = decode(view[start:end])
            if speakers and record.id not in speakers:
                put(record)
            else:
                file.put_spoken(decode_spoken(view[start:end]))
        else:
            _take(view[start:end], file)
        start, end = end + 1, find(b"\n", end + 1)


def _take(line: memoryview, file: File) -> None:
    """Take a line in, as the CLI tells lines apart."""
    record = decode_line(line)
    if record.rewind_to is not UNSET:
        return  # what is taken back was paid for
    if record.id is not UNSET:
        file.put_spoken(decode_spoken(line))
    elif record.set is not UNSET:
        file.tell(record.set, is_begin=False)
    elif record.session_id is not UNSET and record.message is UNSET:
        file.tell(record, is_begin=True)
    else:
        raise Unsure


def _conversation(group: str, files: Sequence[File]) -> Metered:
    """Return several files as one conversation, as `merge` and `sessions` tell it."""
    ordered = sorted(files, key=lambda file: file.order)
    whole, about = _merged(ordered), _metadata(ordered)
    place, native_id = ordered[0].origin, ordered[0].native_id
    started_at, ended_at = _times(whole, ordered, about.get("last_updated"))
    parent = f"gemini:{place.parent_stem or place.parent_id}" if place.parent_id else None
    keys = sorted({file.origin.project_key or "" for file in ordered}, key=lambda key: (len(key), key))
    is_subagent = parent is not None or about.get("kind") == "subagent"
    project_hash = about.get("project_hash") or None
    return Metered(
        group,
        native_id,
        f"{parent}/{place.stem}" if parent else f"gemini:{place.stem}",
        "subagent" if is_subagent else "main",
        parent,
        Project(None, keys[0] or place.project_key, project_hash, "none"),
        started_at,
        ended_at,
        tuple(sorted(file.source.shown for file in ordered)),
        _requests(whole, native_id),
    )


def _merged(files: Sequence[File]) -> File:
    """Return every message once, in order of first appearance."""
    first, *others = files
    for other in others:
        first.is_tangled = first.is_tangled or other.is_tangled
        first.bare |= other.bare
        first.speakers = {
            name
            for name in first.speakers | other.speakers
            if all(name in file.speakers or name not in file.said for file in (first, other))
        }
        for record in other.said.values():
            first.put(record)
    if not all(
        [record.timestamp.tzinfo is UTC and record.rewind_to is UNSET for record in first.said.values()]
    ):
        raise Unsure
    return first


def _metadata(files: Sequence[File]) -> dict[str, str]:
    """Return what the files say of the session; of two answers, that of the file updated last."""
    known: dict[str, str] = {}
    for file in sorted(files, key=lambda file: file.metadata.get("last_updated") or ""):
        known |= file.metadata
    return known


def _requests(whole: File, native_id: str) -> list[Request]:
    """Return what each answer took; unsure where nothing is counted, or where it may be a copy of another."""
    answers = [record for record in whole.said.values() if record.type == "gemini"]
    counted = [record for record in answers if record.tokens is not None]
    if answers and not (counted and whole.speakers):
        raise Unsure
    if any(record.id in whole.bare or record.id.endswith(_AGAIN) or record.model == "" for record in counted):
        raise Unsure
    return [
        Request(f"{native_id}/{record.id}", record.model, micros(record.timestamp), _figures(record.tokens))
        for record in counted
        if record.tokens is not None
    ]


def _figures(tokens: TokensRecord) -> Figures:
    return (
        tokens.input, tokens.cached, 0, tokens.output, tokens.thoughts, tokens.tool, tokens.total, None
    )  # fmt: skip


def _times(whole: File, files: Iterable[File], updated: str | None) -> tuple[datetime, datetime]:
    """Return when a conversation began and ended."""
    starts = [at for file in files for start in file.starts if (at := parse_time(start)[0]) is not None]
    if not starts:
        raise Unsure
    ended_at = parse_time(updated)[0]
    if not whole.said:
        return min(starts), ended_at or min(starts)
    name, last = next(reversed(whole.said.items()))
    if whole.is_tangled or name.endswith(_AGAIN):
        latest = max(record.timestamp for record in whole.said.values())
        if ended_at is None or ended_at < latest:
            raise Unsure
        return min(starts), ended_at
    return min(starts), last.timestamp if ended_at is None else max(ended_at, last.timestamp)


def _related(found: Sequence[Metered]) -> Iterator[Metered]:
    """Yield conversations, subagents under the names of those who started them, as `families` has it."""
    parents: dict[str | None, Metered] = {}
    for one in found:
        if one.kind == "main":
            parents.setdefault(one.native_id, one)
    for one in found:
        parent = parents.get(parent_id(one.paths[0], one.native_id)) if one.kind == "subagent" else None
        if parent is None:
            yield one
        else:
            name = agent_id(one.key)
            yield msgspec.structs.replace(one, key=f"{parent.key}/{name}", parent=parent.key)

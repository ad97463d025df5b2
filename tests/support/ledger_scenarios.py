"""Scenarios that split, copy, rewind or rewrite the files of a session without adding a request."""

import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from support.conversation_files import as_lines, uuid, write_file
from support.gemini_home import sha
from support.token_homes import (
    FORMS,
    ROOT,
    Request,
    Work,
    at,
    claude_file,
    claude_records,
    codex_file,
    codex_meta,
    codex_turns,
    gemini_file,
    gemini_head,
    gemini_json,
    gemini_lines,
    gemini_messages,
    thread,
)

Json = dict[str, Any]
Scenario = Callable[[Path, Work, Random], None]
"""Writes a session into a home, in the state in which an agent or a user may leave it."""
CHILD = 5000
"""The difference between the number of a forked session and that of its parent."""


def split_requests(work: Work, dice: Random) -> tuple[list[Request], list[Request]]:
    """Split the requests at a random place; the first part is never empty."""
    place = dice.randrange(1, len(work.requests) + 1)
    return work.requests[:place], work.requests[place:]


def write_plainly(form: str) -> Scenario:
    """Return the scenario that writes a session without any incident."""

    def happened(home: Path, work: Work, _dice: Random) -> None:
        FORMS[form].write(home, work.session, work.requests)

    return happened


# Gemini CLI -------------------------------------------------------------------------------------------------------


def write_compressed(home: Path, work: Work, dice: Random) -> None:
    """`/compress` up to 0.24 continues the session in another file."""
    for requests in split_requests(work, dice):
        if requests:
            gemini_json(home, work.session, requests)


def write_twins(home: Path, work: Work, dice: Random) -> None:
    """A .json file that 0.39 or later resumes gets a .jsonl file beside it, and stays."""
    before, after = split_requests(work, dice)
    whole = gemini_json(home, work.session, before)
    resumed = {"$set": {"sessionId": uuid(work.session)}}
    records = [*gemini_messages(work.session, before), resumed, *gemini_messages(work.session, after)]
    head = gemini_head(work.session, before)
    write_file(whole.with_suffix(".jsonl"), as_lines([head, *records]))


def write_rewound(home: Path, work: Work, dice: Random) -> None:
    """A rewind drops messages, but their requests were billed."""
    before, after = split_requests(work, dice)
    prompts = [record["id"] for record in gemini_messages(work.session, before) if record["type"] == "user"]
    to = {"$rewindTo": dice.choice([*prompts, "a message that is not there"])}
    gemini_lines(home, work.session, before, [to, *gemini_messages(work.session, after)])


def write_again(home: Path, work: Work, _dice: Random) -> None:
    """Every message is written three times, an answer first without its tokens."""
    head, records = gemini_head(work.session, work.requests), gemini_messages(work.session, work.requests)
    bare = [{name: value for name, value in record.items() if name != "tokens"} for record in records]
    lines = [one for pair in zip(bare, records, records, strict=True) for one in pair]
    file = gemini_file(home, work.session, work.requests[0].minute, "jsonl")
    write_file(file, as_lines([head, *lines]))


def write_resumed(home: Path, work: Work, dice: Random) -> None:
    """A resume by 0.44 or later records the history again, and leaves a second file without messages."""
    before, after = split_requests(work, dice)
    messages = [content_in_parts(record) for record in gemini_messages(work.session, before)]
    again: list[Json] = [{"$set": {"sessionId": uuid(work.session)}}, {"$set": {"messages": messages}}]
    gemini_lines(home, work.session, before, [*again, *gemini_messages(work.session, after)])
    head = gemini_head(work.session, before)
    minute = before[-1].minute + 1
    ghost = {**head, "startTime": at(minute), "lastUpdated": at(minute)}
    write_file(gemini_file(home, work.session, minute, "jsonl"), as_lines([ghost]))


def write_resumed_at_once(home: Path, work: Work, dice: Random) -> None:
    """A resume in the minute of the session's start records the history again without its tokens."""
    before, after = split_requests(work, dice)
    told = gemini_messages(work.session, before)
    bare = [
        {name: content_in_parts(one)[name] for name in ("id", "timestamp", "type", "content")} for one in told
    ]
    again = [gemini_head(work.session, before), {"$set": {"messages": bare}}]
    gemini_lines(home, work.session, before, [*again, *gemini_messages(work.session, after)])


def content_in_parts(message: Json) -> Json:
    content = message["content"]
    return {**message, "content": content if isinstance(content, list) else [{"text": content}]}


def migrate_home(home: Path) -> None:
    """Since 0.29 the CLI copies a project's folder to a folder with a name, and keeps the old one."""
    folder = home / ".gemini/tmp/almanac"
    if folder.exists():
        shutil.copytree(folder / "chats", home / ".gemini/tmp" / sha(ROOT) / "chats", dirs_exist_ok=True)


# Claude Code ------------------------------------------------------------------------------------------------------


def write_streamed(home: Path, work: Work, dice: Random) -> None:
    """A response is stored in several pieces; each one has the output tokens so far."""
    records = claude_records(work.session, work.requests, pieces=dice.randrange(2, 5))
    write_file(claude_file(home, work.session), as_lines(records))


def write_forked(home: Path, work: Work, dice: Random) -> None:
    """A fork, or a resume by 1.0, copies the lines into a new file; only the session id differs."""
    before, _after = split_requests(work, dice)
    lines = claude_records(work.session, work.requests)
    write_file(claude_file(home, work.session), as_lines(lines[: 2 * len(before)]))
    child = work.session + CHILD
    copied = [{**line, "sessionId": uuid(child)} for line in lines]
    write_file(claude_file(home, child), as_lines(copied))


def write_continued(home: Path, work: Work, dice: Random) -> None:
    """Sessions begin with the lines of another one under its session id, and continue under their own."""
    before, after = split_requests(work, dice)
    lines = claude_records(work.session, work.requests)
    write_file(claude_file(home, work.session), as_lines(lines[: 2 * len(before)]))
    write_children(home, work.session, lines, [2 * len(before), *branches(before, after, dice)])


def write_orphaned(home: Path, work: Work, dice: Random) -> None:
    """The same, and Claude Code has deleted the file of the first session: all of its requests are copies."""
    before, after = split_requests(work, dice)
    lines = claude_records(work.session, work.requests)
    if after:
        write_children(home, work.session, lines, [2 * len(before), *branches(before, after, dice)])
    else:
        write_file(claude_file(home, work.session), as_lines(lines))


def branches(before: Sequence[Request], after: Sequence[Request], dice: Random) -> list[int]:
    """Return the lines at which the own part of each child ends."""
    whole = len(before) + len(after)
    return sorted({2 * dice.randrange(len(before), whole + 1), 2 * whole})


def write_children(home: Path, session: int, lines: Sequence[Json], ends: Sequence[int]) -> None:
    """Write a child for the lines between each two ends, after a copy of the lines before the first end."""
    for number, (start, end) in enumerate(pairwise(ends), 1):
        child = session + number * CHILD
        own = [{**line, "sessionId": uuid(child)} for line in lines[start:end]]
        if own:
            write_file(claude_file(home, child), as_lines([*lines[: ends[0]], *own]))


def write_moved(home: Path, work: Work, dice: Random) -> None:
    """A moved project has its sessions in two folders; the older folder may lack their last lines."""
    before, _after = split_requests(work, dice)
    lines = claude_records(work.session, work.requests)
    write_file(claude_file(home, work.session), as_lines(lines))
    write_file(claude_file(home, work.session, "-home-ann-old"), as_lines(lines[: 2 * len(before)]))


# Codex CLI --------------------------------------------------------------------------------------------------------


def write_counts_twice(home: Path, work: Work, dice: Random) -> None:
    """A token count is written again, unchanged or with an estimate after a compaction."""
    start = work.requests[0].minute
    lines = [codex_meta(work.session, start), *codex_turns(work.requests)]
    again = [copy for line in lines for copy in (line, *repeated_counts(line, dice))]
    write_file(codex_file(home, work.session, start), as_lines(again))


def repeated_counts(line: Json, dice: Random) -> Sequence[Json]:
    payload = line["payload"]
    if payload.get("type") != "token_count" or dice.random() < 0.5:
        return ()
    guess = {name: figure // 2 for name, figure in payload["info"]["last_token_usage"].items()}
    info = {**payload["info"], "last_token_usage": guess}
    return (dice.choice([line, {**line, "payload": {**payload, "info": info}}]),)


def write_branched(home: Path, work: Work, dice: Random) -> None:
    """A fork begins with its parent's lines under new timestamps, and its counts continue from there."""
    before, after = split_requests(work, dice)
    FORMS["codex"].write(home, work.session, before)
    if after:
        start, child = after[0].minute, work.session + CHILD
        parent = codex_meta(work.session, before[0].minute)
        copied = [{**line, "timestamp": at(start)} for line in (parent, *codex_turns(before))]
        meta = codex_meta(child, start, forked_from_id=thread(work.session, before[0].minute))
        own = codex_turns(after, earlier=before)
        write_file(codex_file(home, child, start), as_lines([meta, *copied, *own]))


def write_archived(home: Path, work: Work, dice: Random) -> None:
    """An archived thread that a backup also puts back; the archived file may lack the last requests."""
    before, _after = split_requests(work, dice)
    start = work.requests[0].minute
    FORMS["codex"].write(home, work.session, work.requests)
    lines = [codex_meta(work.session, start), *codex_turns(before)]
    write_file(codex_file(home, work.session, start, "archived_sessions"), as_lines(lines))


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    **{form: (form, write_plainly(form)) for form in FORMS},
    "compressed": ("gemini-json", write_compressed),
    "twins": ("gemini-json", write_twins),
    "rewound": ("gemini-lines", write_rewound),
    "written again": ("gemini-lines", write_again),
    "resumed": ("gemini-lines", write_resumed),
    "resumed at once": ("gemini-lines", write_resumed_at_once),
    "streamed": ("claude", write_streamed),
    "forked": ("claude", write_forked),
    "continued": ("claude", write_continued),
    "orphaned": ("claude", write_orphaned),
    "moved": ("claude", write_moved),
    "counted twice": ("codex", write_counts_twice),
    "branched": ("codex", write_branched),
    "archived": ("codex", write_archived),
}
"""The form of the session without the scenario, and the function that writes it, by scenario name."""

"""The active view is what the CLI's own loader returns: asked of the loader itself, file by file."""

import hashlib
import json
import operator
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from retold.agents import gemini
from retold.agents.protocol import Reading, Source
from retold.model.problem import Problem
from support.real_gemini import Oracle, Record, record_ids

pytestmark = [pytest.mark.shared, pytest.mark.real_cli]

FORMATS = ("gemini-json", "gemini-jsonl")
STAMP = "2026-01-02T03:04:05.678Z"
ENVIRONMENT = hashlib.sha256(b"environment-context").hexdigest()[:32]
"""The id under which the CLI records its session context."""
OPENING = {"sessionId": "s", "projectHash": "h", "startTime": STAMP, "lastUpdated": STAMP, "kind": "main"}
BOM = b"\xef\xbb\xbf"


# What is compared


def session_reading(file: Path) -> Reading | None:
    """The one reading of a session file; None for a file that we take for something else."""
    found = gemini.read(Source(file))
    if isinstance(found, Problem) or found[0].format not in FORMATS:
        return None
    (reading,) = found
    return reading


def active_ids(file: Path) -> list[str | None]:
    reading = session_reading(file)
    return [] if reading is None else [entry.id for entry in gemini.join([reading], "active").timeline]


def is_given_up(file: Path) -> bool:
    """Tell whether we say that the loader gives this file up; one without a session id it cannot load either."""
    reading = session_reading(file)
    if reading is None:
        return True
    session = gemini.join([reading], "active")
    codes = {problem.code for problem in session.problems}
    return not session.timeline and not codes.isdisjoint(("unreadable-by-agent", "no-metadata"))


def differences(files: Sequence[Path], records: Sequence[Record]) -> list[str]:
    """Describe where our active view is not the loader's, the smallest file first."""
    found = []
    for file, record in sorted(zip(files, records, strict=True), key=lambda pair: pair[0].stat().st_size):
        content = repr(file.read_bytes()[:2000])
        try:
            theirs, ours = record_ids(record), active_ids(file)
        except Exception as error:
            error.add_note(f"while reading {content}")
            raise
        if theirs != ours:
            loader = "gives it up" if record.get("unreadable") else f"returns {theirs}"
            found.append(f"{file.name}: the loader {loader}, we return {ours}\n  {content}")
    return found


# What the loader is asked about


def chats(shared: Path) -> list[Path]:
    """Every session file that the real CLI wrote."""
    found = (shared / "corpus" / "gemini-cli").rglob("*")
    return sorted(file for file in found if "chats" in file.parts and file.suffix in (".json", ".jsonl"))


def public_sessions(shared: Path) -> list[Path]:
    """Every session file of the public corpus, as far as we take it for one."""
    found = (file for file in (shared / "corpus" / "public" / "gemini").rglob("*") if file.is_file())
    return sorted(file for file in found if session_reading(file))


def generated(contents: st.SearchStrategy[bytes], count: int) -> list[bytes]:
    """Return up to `count` different contents: Node starts slowly, so that all are asked about at once."""
    found: dict[bytes, None] = {}

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(contents)
    def collect(content: bytes) -> None:
        found[content] = None

    collect()
    return list(found)


def written(folder: Path, contents: Iterable[bytes]) -> list[Path]:
    files = []
    for number, content in enumerate(contents):
        file = folder / f"session-{number:04}.jsonl"
        file.write_bytes(content)
        files.append(file)
    return files


# How generated files look


def rarely(often: Any, *rare: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from([often] * 12 + list(rare))


def either(*choices: tuple[int, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """`one_of` with weights, which it has not."""
    weighted = [strategy for weight, strategy in choices for _ in range(weight)]
    return st.sampled_from(weighted).flatmap(lambda chosen: chosen)


# No raw U+2028 or U+2029: whether Node's readline ends a line there depends on the version of Node.
IDS = st.sampled_from(["a", "b", "c", "d", "a_response", ENVIRONMENT, ""])
TEXTS = st.sampled_from(
    (
        "", " ", "hello", "/help", "?", "Please continue.", "caf\u00e9 \U0001f600", "half a pair \ud83d",
        "<session_context>here</session_context>", "<hook_context>there</hook_context>", "<state_snapshot>so far",
        "tab\there", "bell\x07", "lines\r\nand\nlines",
    )
)  # fmt: skip
ODDITIES: st.SearchStrategy[Any] = st.sampled_from(
    [
        None, 0, 5, 1.5, True, False, "", "x", [], ["x"], [None], {}, {"name": "f"}, {"mimeType": 5},
        {"mimeType": "image/png", "data": "AA=="}, {"mimeType": None, "data": 5},
    ]
)  # fmt: skip
KINDS = st.sampled_from(
    (
        "text", "functionCall", "functionResponse", "inlineData", "fileData", "thought", "executableCode",
        "codeExecutionResult", "videoMetadata", "unheardOf",
    )
)  # fmt: skip
PLAIN_PARTS = st.fixed_dictionaries({"text": TEXTS})
PARTS = st.one_of(
    PLAIN_PARTS,
    st.fixed_dictionaries({"functionResponse": st.fixed_dictionaries({"id": IDS, "response": ODDITIES})}),
    st.dictionaries(KINDS, st.one_of(TEXTS, ODDITIES), min_size=1, max_size=2),
)
TRAPS = st.dictionaries(
    st.sampled_from(("text", "functionCall", "functionResponse", "inlineData")),
    st.sampled_from((None, 5, {}, {"mimeType": 5}, {"mimeType": "image/png"})),
    min_size=1,
    max_size=1,
)
"""Parts at most of which the loader throws."""
NESTED = st.recursive(st.one_of(PARTS, ODDITIES), lambda inner: st.lists(inner, max_size=2), max_leaves=4)
CONTENTS = either(
    (4, TEXTS),
    (4, st.lists(PLAIN_PARTS, max_size=3)),
    (1, TRAPS),
    (1, st.lists(st.one_of(PARTS, TRAPS), max_size=3)),
    (1, PARTS),
    (1, NESTED),
)
TYPES = st.sampled_from(["user", "user", "gemini", "gemini", "info", "error", "unheardOf", None])
CALL = {"id": "c", "name": "glob", "args": {}, "status": "success"}
DETAILS = {
    "timestamp": rarely(STAMP, None, 5, "yesterday"),
    "toolCalls": st.sampled_from([None, [], [{}], [CALL]]),
    "thoughts": st.sampled_from([None, [], [{"subject": "s", "description": "d", "timestamp": STAMP}]]),
    "model": st.sampled_from([None, "gemini-2.5-flash"]),
    "displayContent": CONTENTS,
}
MESSAGES = st.fixed_dictionaries({"id": IDS, "type": TYPES, "content": CONTENTS}, optional=DETAILS)
NAMELESS = st.fixed_dictionaries({"type": TYPES, "content": CONTENTS}, optional={"id": ODDITIES})
MEMBERS = st.lists(either((8, MESSAGES), (1, NAMELESS), (1, ODDITIES)), max_size=5)
ABOUT = {
    "startTime": st.just(STAMP),
    "lastUpdated": st.just(STAMP),
    "kind": st.sampled_from(["main", "subagent"]),
    "messages": either((6, MEMBERS), (1, ODDITIES)),
}
NAMED = {"sessionId": rarely("s", "other", "", None, 5, []), "projectHash": rarely("h", "", None, 5, {})}
METADATA = st.fixed_dictionaries(NAMED, optional=ABOUT)
SCRATCHPAD = {"memoryScratchpad": st.sampled_from([None, {"version": 1}])}
CHANGES = st.fixed_dictionaries({}, optional=NAMED | ABOUT | SCRATCHPAD)
UPDATES = st.fixed_dictionaries({"$set": either((9, CHANGES), (1, ODDITIES))})
REWINDS = st.fixed_dictionaries({"$rewindTo": either((8, IDS), (1, st.just("unknown")), (1, ODDITIES))})
MIXED = st.builds(operator.or_, *[st.one_of(MESSAGES, METADATA, UPDATES, REWINDS)] * 2)
RECORDS = either((9, MESSAGES), (3, UPDATES), (1, REWINDS), (1, METADATA), (1, MIXED), (1, ODDITIES))
NO_RECORDS = st.sampled_from(
    (
        b"", b" ", b"\t", b"\r", b"\x00\x00", b"not JSON", b"{", b"{'id': 'a'}", b'{"id": "a",}', b"NaN", b"\xff\xfe",
        b'{"id": "a", "type": "user"} trailing', BOM + b'{"id": "b", "type": "user", "content": "x"}',
    )
)  # fmt: skip


def dumped(value: Any, *, is_ascii: bool, is_raw: bool, indent: int | None = None) -> bytes:
    """Return JSON; `is_raw` leaves control characters in it that JSON forbids."""
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    if is_raw:
        text = text.replace("\\t", "\t").replace("\\u0007", "\x07")
    return text.encode(errors="surrogatepass")


def joined(lines: Sequence[bytes], ending: bytes, cut: int, *, is_marked: bool) -> bytes:
    """Return a file of these lines, its last bytes cut off, with or without a byte order mark."""
    content = ending.join(lines) + ending
    return (BOM if is_marked else b"") + content[: len(content) - cut]


SELDOM = st.sampled_from([False] * 12 + [True])
LINES = either((9, st.builds(dumped, RECORDS, is_ascii=st.booleans(), is_raw=SELDOM)), (1, NO_RECORDS))
OPENINGS = rarely([dumped(OPENING, is_ascii=True, is_raw=False)], [], [b""], [b"not JSON"])
FORM = {
    "ending": rarely(b"\n", b"\r\n", b"\r"),
    "cut": either((2, st.just(0)), (1, st.integers(0, 30))),
    "is_marked": SELDOM,
}
OPERATIONS = st.builds(list.__add__, OPENINGS, st.lists(LINES, min_size=3, max_size=16))
DOCUMENTS = st.one_of(
    st.fixed_dictionaries(NAMED, optional=ABOUT),
    st.fixed_dictionaries(NAMED | {"messages": MEMBERS}),
    st.fixed_dictionaries({"messages": MEMBERS}, optional=NAMED),
)
PRINTED = st.builds(dumped, DOCUMENTS, is_ascii=st.booleans(), is_raw=SELDOM, indent=rarely(2, None))
OPERATION_LOGS = st.builds(joined, OPERATIONS, **FORM)
WHOLE_FILES = st.builds(joined, PRINTED.map(bytes.splitlines), **FORM | {"cut": rarely(0, 1, 2, 9)})
GENERATED = {"operation logs": (OPERATION_LOGS, 1000), "whole documents": (WHOLE_FILES, 500)}
"""What is generated, and how many files of it."""


# Corners that a generator seldom reaches


SAID = {"id": "a", "type": "user", "content": "x"}
BAD = {"id": "b", "type": "user", "content": {"text": 5}}
"""A message at which the loader throws, where it looks at it."""
LATER = {"id": "c", "type": "gemini", "content": [{"text": "y"}]}
BEYOND = {"id": "d", "type": "user", "content": "z"}
HALF = {"id": "e", "type": "user", "content": "\ud83d"}
RAW = dumped({"$rewindTo": "a", "note": "bell\x07"}, is_ascii=True, is_raw=True)


def as_lines(*values: Any) -> bytes:
    return b"".join(dumped(value, is_ascii=True, is_raw=False) + b"\n" for value in values)


def as_document(*messages: Any, indent: int | None = 2, **about: Any) -> bytes:
    named = {"sessionId": "s", "projectHash": "h"} | about
    return dumped({**named, "messages": messages}, is_ascii=True, is_raw=False, indent=indent)


CORNERS = {
    "a document with bare carriage returns": as_document(SAID).replace(b"\n", b"\r"),
    "a document on one line without a project": as_document(SAID, indent=None, projectHash=None),
    "a document on one line with an empty project": as_document(SAID, indent=None, projectHash=""),
    "a document on one line with a number for a project": as_document(SAID, indent=None, projectHash=5),
    "a document on one line with an empty session id": as_document(SAID, indent=None, sessionId=""),
    "a document on one line with a number for a session id": as_document(SAID, indent=None, sessionId=5),
    "a start without a project, on one line": as_lines(
        {"sessionId": "s", "startTime": STAMP, "messages": [SAID]}
    ),
    "a message on one line that is a document": as_lines(SAID | {"sessionId": "s", "messages": [SAID]}),
    "a $set on one line that is a document": as_lines({"$set": {}, "sessionId": "s", "messages": [SAID]}),
    "a $set that is a list beside the ids": as_lines(
        {"$set": [], "sessionId": "s", "projectHash": "h"}, SAID
    ),
    "a $set of ids that are empty lists": as_lines({"$set": {"sessionId": [], "projectHash": {}}}, SAID),
    "a second version of a message": as_lines(OPENING, SAID, LATER, SAID | {"content": "again"}),
    "a rewind": as_lines(OPENING, SAID, LATER, BEYOND, {"$rewindTo": "c"}),
    "a rewind to nowhere": as_lines(OPENING, SAID, LATER, {"$rewindTo": "unknown"}, BEYOND),
    "a message at which the loader throws, on a line": as_lines(OPENING, BAD, SAID),
    "a $set in which the loader throws": as_lines(OPENING, {"$set": {"messages": [SAID, BAD, LATER]}}),
    "a $set that is lost half-way": as_lines({"$set": {**OPENING, "messages": [SAID, BAD]}}, LATER),
    "lines behind a byte order mark": BOM + b"\n" + as_lines(OPENING | {"messages": []}, SAID),
    "lines, the first with half a surrogate pair in a list": as_lines(OPENING | {"messages": [HALF]}, LATER),
    "a rewind that is no strict JSON": as_lines(OPENING, SAID) + RAW,
    "data of the wrong kind beside data": as_lines(
        OPENING, SAID | {"content": [{"inlineData": ["x"], "fileData": {}}]}
    ),
    "a number among the texts of a resumable message": as_document(SAID | {"content": [{"text": 5}]}, BAD),
    "a message at which the loader throws": as_document(BAD, SAID),
    "a message behind a resumable one, at which it would throw": as_document(SAID, BAD),
    "a null among the messages": as_document(SAID, None),
    "a session id of null": as_document(SAID, sessionId=None),
}


@pytest.fixture(scope="module")
def corners(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Record]]:
    files = written(tmp_path_factory.mktemp("corners"), CORNERS.values())
    return dict(zip(CORNERS, zip(files, oracle(files), strict=True), strict=True))


# The tests


def test_every_session_file_of_the_real_cli_loads_as_the_cli_loads_it(shared: Path, oracle: Oracle) -> None:
    files = chats(shared)
    records = oracle(files)
    assert len(files) > 50
    assert sum(bool(record_ids(record)) for record in records) > 50
    found = differences(files, records)
    assert not found, "\n".join(found[:3])


def test_every_public_session_file_loads_as_the_cli_loads_it(shared: Path, oracle: Oracle) -> None:
    files = public_sessions(shared)
    records = oracle(files)
    assert len(files) > 50
    assert sum(bool(record_ids(record)) for record in records) > 50
    found = differences(files, records)
    assert not found, "\n".join(found[:3])


def test_a_file_is_told_to_be_unreadable_by_the_agent_when_it_is(shared: Path, oracle: Oracle) -> None:
    files = [*chats(shared), *public_sessions(shared)]
    unreadable = {
        file: bool(record.get("unreadable")) for file, record in zip(files, oracle(files), strict=True)
    }
    assert any(unreadable.values())
    assert unreadable == {file: is_given_up(file) for file in files}


@pytest.mark.parametrize("name", CORNERS)
def test_a_corner_loads_as_the_cli_loads_it(corners: dict[str, tuple[Path, Record]], name: str) -> None:
    file, record = corners[name]
    assert active_ids(file) == record_ids(record)


@pytest.mark.parametrize("kind", GENERATED)
def test_generated_files_load_as_the_cli_loads_them(oracle: Oracle, tmp_path: Path, kind: str) -> None:
    files = written(tmp_path, generated(*GENERATED[kind]))
    records = oracle(files)
    assert sum(map(bool, map(record_ids, records))) > len(files) // 4
    found = differences(files, records)
    assert not found, "\n".join(found[:3])

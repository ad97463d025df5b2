"""Records of forgotten conversations are left out of files that hold many conversations."""

import json

import pytest

from retold.archive.annotations import KeyedSet, remove_forgotten
from retold.archive.store import digest

GONE, KEPT = {"sessionId": "heron", "message": "forget"}, {"sessionId": "otter", "message": "keep"}


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (json.dumps(GONE), ""),
        (json.dumps(KEPT), json.dumps(KEPT)),
        (json.dumps([KEPT]), json.dumps([KEPT])),
        (json.dumps([GONE, KEPT]), json.dumps([KEPT], indent=2)),
        (f"{json.dumps(GONE)}\n{json.dumps(KEPT)}\n", f"{json.dumps(KEPT)}\n"),
        ('"heron"', '"heron"'),
    ],
    ids=["one object", "another object", "a list without it", "a list", "lines", "no record"],
)
def test_only_records_of_forgotten_conversations_are_left_out(held: str, expected: str) -> None:
    forgotten = KeyedSet(more=[digest(b"heron")])
    assert remove_forgotten(held.encode(), forgotten).decode() == expected

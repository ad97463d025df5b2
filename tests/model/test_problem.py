"""Problems name what is wrong; they carry no content of any size."""

import json
from pathlib import Path

from retold.agents.registry import read
from retold.model.problem import LONGEST_MESSAGE, problem


def test_a_long_message_is_cut() -> None:
    told = problem("unknown-part", "x" * (LONGEST_MESSAGE + 1), "a.jsonl", 1, "/y" * LONGEST_MESSAGE)
    assert (len(told.message), told.message[-2:]) == (LONGEST_MESSAGE, "x…")
    assert len(told.pointer) == LONGEST_MESSAGE
    assert problem("unknown-part", "x" * LONGEST_MESSAGE, "a.jsonl").message == "x" * LONGEST_MESSAGE


def test_a_line_with_thousands_of_unknown_keys_is_named_by_a_few(tmp_path: Path) -> None:
    line = {"type": "user", "uuid": "u1", "sessionId": "s", "message": {"role": "user", "content": "Ahoy."}}
    odd = {f"odd{number:05}": number for number in range(14_000)}
    file = tmp_path / "5b1f0c7e-2a94-4d3b-9c61-7e0d4f82a6b3.jsonl"
    file.write_text(json.dumps({**line, **odd}) + "\n", encoding="utf-8")
    (session,) = read(file)
    (told,) = [one for one in session.problems if one.code == "unknown-part"]
    assert told.message == (
        "unknown keys in a line: odd00000, odd00001, odd00002, odd00003, odd00004, odd00005, odd00006, odd00007"
        " and 13992 more"
    )

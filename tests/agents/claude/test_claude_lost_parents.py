"""A Claude Code line whose parent is lost goes on from a line that is a little older, and from no later one."""

import json
from pathlib import Path

from retold.agents.registry import read
from support.conversation_files import FORMS, at, turns


def test_a_later_line_is_no_parent(tmp_path: Path) -> None:
    file = FORMS["claude"].write(tmp_path, 1, turns("herons"))
    first, *_ = lines = [json.loads(line) for line in file.read_text().splitlines()]
    prompt = {**first, "parentUuid": lines[-1]["uuid"]}
    aside = {**prompt, "uuid": "aside", "timestamp": at(100), "message": {"role": "user", "content": "aside"}}
    further = {
        **prompt, "uuid": "further", "parentUuid": "lost", "timestamp": at(6), "message": {"role": "user", "content": "further"}
    }  # fmt: skip
    file.write_text("".join(json.dumps(line) + "\n" for line in (*lines, aside, further)))
    (session,) = read(file)
    fates = {entry.id: entry.fate for entry in session.timeline}
    assert (fates["further"], fates[first["uuid"]], fates["aside"]) == ("live", "live", "rewound")

"""The work of finding out what sessions hold of others grows with the archive, however often one id occurs."""

import json
from pathlib import Path

import pytest

from retold.archive.relations import resolve_relations
from retold.archive.store import Store
from support.synced_archive import sync_archive

SIZE = 200


def lines(session: str, size: int) -> str:
    return "".join(
        json.dumps(
            {
                "parentUuid": None,
                "sessionId": session,
                "type": "assistant",
                "uuid": "00000000-0000-4000-8000-000000000001",
                "timestamp": f"2026-03-01T09:{number // 60:02d}:{number % 60:02d}.000Z",
                "message": {"role": "assistant", "content": [{"type": "text", "text": f"Say {number}."}]},
            }
        )
        + "\n"
        for number in range(size)
    )


def sqlite_steps(folder: Path, sizes: list[int]) -> int:
    """Return how many steps SQLite takes to settle sessions that consist of so many lines with one id."""
    for number, size in enumerate(sizes):
        name = f"00000000-0000-4000-9000-{number:012x}"
        file = folder / "home" / ".claude" / "projects" / "-work-almanac" / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(lines(name, size), encoding="utf-8")
    archive = sync_archive(folder / "archive", {"HOME": str(folder / "home")})
    with Store(archive.folder, can_write=True) as record:
        sessions = [one for (one,) in record.rows("SELECT id FROM sessions")]
        assert len(list(record.rows("SELECT 1 FROM messages WHERE uid IS NOT NULL"))) >= sum(sizes)
        steps = 0

        def count() -> bool:
            nonlocal steps
            steps += 1
            return False

        record.connection.set_progress_handler(count, 20)
        resolve_relations(record, sessions)
    return steps


@pytest.mark.parametrize("beside", [[], [1], [SIZE]])
def test_one_id_in_every_line_takes_linear_time(tmp_path: Path, beside: list[int]) -> None:
    small, middle, large = (
        sqlite_steps(tmp_path / str(times), [times * SIZE, *(times * size for size in beside)])
        for times in (1, 2, 4)
    )
    assert large - middle <= 2.5 * (middle - small), (small, middle, large)

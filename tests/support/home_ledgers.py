"""The request ledger of some homes from two sources: an archive, and a count of the files."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from retold.archive.record import Record
from retold.archive.rows import name_of
from retold.ingest.counted import Counted
from retold.ingest.tally import Tally
from retold.model.report import FIGURES
from retold.model.wire import time_text
from support.synced_archive import Given, sync_archive

Entry = tuple[Any, ...]
_ASKED = f"""
SELECT agent, key, read_kind, requests.name, requests.model, at, {", ".join(f"requests.{figure}" for figure in FIGURES)}, requests.estimated
FROM requests JOIN sessions ON sessions.id = requests.session WHERE own
"""  # noqa: S608 - fixed SQL
_TIMES = "SELECT key, started_at, ended_at, root, native_key, hash FROM sessions"


def ledger_from_archive(folder: str) -> list[Entry]:
    """Return every own request in an archive, with its session."""
    with Record(folder) as record:
        return sorted(record.rows(_ASKED), key=repr)


def ledger_from_files(conversations: Sequence[Counted]) -> list[Entry]:
    """Return every request of counted conversations, in the same form."""
    return sorted(_entries(conversations), key=repr)


def _entries(conversations: Sequence[Counted]) -> Iterator[Entry]:
    for one in conversations:
        for request in one.requests:
            name = name_of("request", request.name)
            told = (request.model, request.at, *request.figures, int(request.estimated))
            yield (one.agent, one.key, one.kind, name, *told)


def count_both_ways(home: Path, given: Given = ()) -> Tally:
    """Count a home's files, check the counts against a temporary archive, and return the tally."""
    env = {"HOME": str(home)}
    tally = Tally(env, given)
    conversations = tally.conversations()
    with TemporaryDirectory() as folder:
        sync_archive(folder, env, given)
        assert ledger_from_files(conversations) == ledger_from_archive(folder)
        with Record(folder) as record:
            sessions = {key: row for key, *row in record.rows(_TIMES)}
    for one in conversations:
        started_at, ended_at, root, native_key, project_hash = sessions[one.key]
        assert (_text(one.started_at), _text(one.ended_at)) == (started_at, ended_at), one.key
        assert (one.project.native_key, one.project.hash) == (native_key, project_hash), one.key
        assert one.project.root in (root, None), one.key
    return tally


def _text(at: Any) -> str | None:
    return None if at is None else time_text(at)


def homes_in(folder: Path, *names: str) -> list[Path]:
    """Return every folder below `folder` that contains a folder with one of these names."""
    return sorted(
        Path(path) for path, folders, _ in os.walk(folder) if any(name in folders for name in names)
    )


def copy_into_home(files: Iterable[Path], home: Path) -> Path:
    """Copy each file into a project of its own in every agent's home; Codex CLI gets rollouts only."""
    for number, file in enumerate(files):
        places = [
            home / ".gemini" / "tmp" / f"p{number}" / "chats",
            home / ".claude" / "projects" / f"-p{number}",
        ]
        if file.name.startswith("rollout-"):
            places.append(home / ".codex" / "sessions" / "2026" / "03" / f"{number % 28 + 1:02}")
        for place in places:
            place.mkdir(parents=True, exist_ok=True)
            (place / file.name).write_bytes(file.read_bytes())
            os.utime(place / file.name, (1_772_355_900, 1_772_355_900))
    return home

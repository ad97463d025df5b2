"""Reads the request ledger of an archive, and makes homes to fill one."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from retold.archive.store import Store
from retold.model import FIGURES

Entry = tuple[Any, ...]
_ASKED = f"""
SELECT agent, key, read_kind, requests.uid, requests.model, at, {", ".join(f"requests.{figure}" for figure in FIGURES)}, requests.estimated
FROM requests JOIN sessions ON sessions.id = requests.session WHERE own
"""  # noqa: S608 - fixed SQL


def ledger_from_archive(folder: str) -> list[Entry]:
    """Return every own request in an archive, with its session."""
    with Store(folder) as record:
        return sorted(record.rows(_ASKED), key=repr)


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

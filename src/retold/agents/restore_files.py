"""Restores a conversation from its own files, byte for byte, for agents that find a session by its file."""

from collections.abc import Callable, Iterator
from pathlib import Path

from retold.agents.protocol import Addition, LostSession, RestoreAdditions, RestoreRefusal, Source, Target

MovePath = Callable[[Path], Path]
"""Returns the new path of a file, both relative to the sessions of a home."""


def plan_same_files(
    lost: LostSession, target: Target, move: MovePath = Path
) -> RestoreAdditions | RestoreRefusal:
    """Return the files of a conversation that a home lacks, each at its old path or at the path that `move` returns."""
    if lost.session.native_id is None or lost.session.kind not in ("main", "fork"):
        return RestoreRefusal(f"{lost.session.key} is no session that can be resumed by itself")
    files = [source for source in lost.files if source.cluster is not None]
    if not files:
        return RestoreRefusal(f"nothing but prompts is left of {lost.session.key}")
    return RestoreAdditions(lost.session.native_id, tuple(_select_missing(files, target, move)))


def _select_missing(files: list[Source], target: Target, move: MovePath) -> Iterator[Addition]:
    sources_by_path: dict[Path, list[Source]] = {}
    # The longest path first: side files of a session come before the session itself.
    for source in sorted(files, key=lambda source: -len(source.path.parts)):
        path = _target_path(source, target, move)
        if path is not None and not target.home.disk.is_file(str(path)):
            sources_by_path.setdefault(path, []).append(source)
    # Several homes may hold a file at one path: the largest is restored.
    return (
        Addition(path, source=max(candidates, key=_file_extent))
        for path, candidates in sources_by_path.items()
    )


def _file_extent(source: Source) -> tuple[int, int]:
    file = source.disk.open(str(source.path))
    try:
        return file.size, file.modified_ns
    finally:
        file.close()


def _target_path(source: Source, target: Target, move: MovePath) -> Path | None:
    home = source.home
    if home is None:
        return None
    if source.path.is_relative_to(home.sessions):
        return target.home.sessions / move(source.path.relative_to(home.sessions))
    return (
        target.home.path / source.path.relative_to(home.path)
        if source.path.is_relative_to(home.path)
        else None
    )

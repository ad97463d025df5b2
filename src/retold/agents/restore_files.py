"""A conversation written back by the files that it had, byte for byte: for agents that find a session by its file."""

from collections.abc import Callable, Iterator
from pathlib import Path

from retold.agents.protocol import Addition, Lost, Restored, RestoreRefused, Source, Target

Move = Callable[[Path], Path]
"""Returns where a file belongs, by its place among the sessions of a home."""


def verbatim(lost: Lost, target: Target, move: Move = Path) -> Restored | RestoreRefused:
    """Return the files of a conversation that a home lacks, each in the place that it had, or to which it is moved."""
    if lost.session.native_id is None or lost.session.kind not in ("main", "fork"):
        return RestoreRefused(f"{lost.session.key} is no session that can be resumed by itself")
    files = [source for source in lost.files if source.cluster is not None]
    if not files:
        return RestoreRefused(f"nothing but prompts is left of {lost.session.key}")
    return Restored(lost.session.native_id, tuple(_missing(files, target, move)))


def _missing(files: list[Source], target: Target, move: Move) -> Iterator[Addition]:
    places: dict[Path, list[Source]] = {}
    # The longest path first: what lies beside a session before the session itself.
    for source in sorted(files, key=lambda source: -len(source.path.parts)):
        path = _place(source, target, move)
        if path is not None and not target.home.disk.is_file(str(path)):
            places.setdefault(path, []).append(source)
    # Several homes may have had a file in one place: the one that went on furthest is written back.
    return (Addition(path, source=max(held, key=_extent)) for path, held in places.items())


def _extent(source: Source) -> tuple[int, int]:
    """Return how much a file holds, and when it was written last."""
    file = source.disk.open(str(source.path))
    try:
        return file.size, file.modified_ns
    finally:
        file.close()


def _place(source: Source, target: Target, move: Move) -> Path | None:
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

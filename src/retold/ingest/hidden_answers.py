"""The answers of a sync about hidden paths: each under the keyed hash of its path, and found again from the folder above.

Where nothing is forgotten, nothing of this is imported.
"""

from __future__ import annotations

import os

from retold.archive.keyed_hashes import HiddenPaths, key_of, keyed_hash, shown_paths
from retold.archive.store import as_stored
from retold.archive.sync_state import BELOW, HIDDEN

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from retold.archive.store import Store
    from retold.archive.sync_state import Answer

WAY = "way"
"""Marks a hidden folder above a path that was looked at."""
OF_PATHS = ("folder", "file", "held")


def with_hidden_paths(record: Store, agent: str, answers: Iterable[Answer]) -> Iterator[Answer]:
    """Yield the answers as they are to be kept: none names a path that only forgotten sessions lead to."""
    hidden = HiddenPaths(record)
    if not hidden:
        yield from answers
        return
    shown: set[str] = set()
    for path in shown_paths(record, agent):
        while path not in shown:
            shown.add(path)
            path = os.path.dirname(path)  # noqa: PLW2901 - up to the root
    for kind, asked, answer in answers:
        way = list(_hidden_way(os.fsdecode(asked), hidden, shown)) if kind in OF_PATHS else []
        if not way:
            yield kind, asked, answer
            continue
        yield BELOW, as_stored(os.path.dirname(way[0])), None
        yield from ((WAY, hidden.stored(folder), None) for folder in way[:-1])
        yield kind, hidden.stored(way[-1]), answer


def _hidden_way(path: str, hidden: HiddenPaths, shown: set[str]) -> Iterator[str]:
    """Yield the hidden part of a path, folder by folder; nothing if none of it is hidden."""
    whole = [path]
    while (above := os.path.dirname(whole[-1])) != whole[-1]:
        whole.append(above)
    is_hidden = False
    for folder in reversed(whole):
        is_hidden = is_hidden or (folder in hidden and folder not in shown)
        if is_hidden:
            yield folder


def are_hidden_unchanged(
    record: Store,
    starts: Iterable[str],
    kept: Mapping[str, Iterable[tuple[str, object]]],
    now: Callable[[str, str, object], object],
) -> bool:
    """Tell whether hidden paths answer as before: `kept` has their answers by what stands for the path."""
    key, folders = key_of(record), list(starts)
    left = {stored for stored, answers in kept.items() if any(answer is not None for _, answer in answers)}
    while folders:
        folder = folders.pop()
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            stored = f"{HIDDEN}{keyed_hash(key, path).hex()}"
            if stored not in kept:
                continue
            if any(kind != WAY and answer != now(kind, path, answer) for kind, answer in kept[stored]):
                return False
            left.discard(stored)
            folders.append(path)
    return not left

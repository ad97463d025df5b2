"""Hashes whose paths were found once, kept for next time."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from retold.reading.decoding import Decoded, decode
from retold.reading.files import FileBytes, read_bytes

NAME = "projects.json"


def remembered(home: Path) -> dict[str, str]:
    """Return the pairs of hash and path that were found before; none, if the file is not as we wrote it."""
    file = read_bytes(home / NAME)
    decoded = decode(file.data) if isinstance(file, FileBytes) else None
    pairs = decoded.value if isinstance(decoded, Decoded) and isinstance(decoded.value, dict) else {}
    return {key: root for key, root in pairs.items() if isinstance(root, str)}


def remember(home: Path, pairs: Mapping[str, str]) -> None:
    """Keep the pairs beside those known already: written whole, for its owner's eyes, or not at all."""
    known = remembered(home)
    if pairs.items() <= known.items():
        return
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=home, prefix=NAME)  # owner-only from the start
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({**known, **pairs}, file, indent=1, sort_keys=True)
    Path(draft).replace(home / NAME)

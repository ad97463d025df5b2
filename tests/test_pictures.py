"""The pictures in README and docs can be taken, and show the present state. `make pictures` takes them again."""

import os
from pathlib import Path

import pytest

from conftest import available
from support.readme_pictures import FOLDER, MADE_FROM, ROOT, source_digest, take_pictures

IS_WRITING = os.environ.get("RETOLD_PICTURES") == "write"
DULL = 15_000
"""Bytes of a picture with nothing on it are fewer."""


@pytest.mark.chromium
def test_pictures_are_of_what_there_is(tmp_path: Path) -> None:
    with available():
        taken = dict(take_pictures(tmp_path / "mira"))
    assert all(len(picture) > DULL for picture in taken.values())
    if IS_WRITING:
        FOLDER.mkdir(exist_ok=True)
        for name, picture in taken.items():
            (FOLDER / name).write_bytes(picture)
        MADE_FROM.write_text(source_digest() + "\n", encoding="ascii")
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert set(taken) == {path.name for path in FOLDER.glob("*.png")}
    assert all(f"pictures/{name})" in text for name in taken)
    assert MADE_FROM.read_text(encoding="ascii").strip() == source_digest(), (
        "stale: `make pictures` takes them again"
    )

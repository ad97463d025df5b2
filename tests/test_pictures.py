"""The pictures in the README can be taken, and are of what there is now. `make pictures` takes them anew."""

import os
from pathlib import Path

from conftest import available
from pictures import FOLDER, MADE_FROM, ROOT, digest, pictures

IS_WRITING = os.environ.get("RETOLD_PICTURES") == "write"
DULL = 15_000
"""Bytes of a picture with nothing on it are fewer."""


def test_pictures_are_of_what_there_is(tmp_path: Path) -> None:
    with available():
        taken = dict(pictures(tmp_path / "mira"))
    assert all(len(picture) > DULL for picture in taken.values())
    if IS_WRITING:
        FOLDER.mkdir(exist_ok=True)
        for name, picture in taken.items():
            (FOLDER / name).write_bytes(picture)
        MADE_FROM.write_text(digest() + "\n", encoding="ascii")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(taken) == {path.name for path in FOLDER.glob("*.png")}
    assert all(f"](docs/pictures/{name})" in readme for name in taken)
    assert MADE_FROM.read_text(encoding="ascii").strip() == digest(), "stale: `make pictures` takes them anew"

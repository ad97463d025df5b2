"""What tells a folder that the demo made, and which files in it are the demo's."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

MARKER = ".retold-demo"
OWN = "retold"
"""The folder within for retold's own things: the archive of a demo goes when the demo does."""
_HEAD = "# Made by `retold demo`, which may remove the files named below, and the folder `retold`.\n"


def is_marked(folder: Path) -> bool:
    """Tell whether the demo made this folder."""
    try:
        return (folder / MARKER).read_text(encoding="utf-8").startswith(_HEAD)
    except (OSError, UnicodeDecodeError):
        return False


def demo_folder(own: Path) -> Path:
    """Return where the demo lies that belongs to retold's own folder: around it, if that is a demo's already."""
    return own.parent if own.name == OWN and is_marked(own.parent) else own / "demo"


def marks(names: Iterable[str]) -> str:
    """Return what the marker says of a folder with these files."""
    return _HEAD + "".join(f"{name}\n" for name in names)


def unmake(folder: Path) -> None:
    """Remove what the demo made, and each folder that is empty then; leave everything else."""
    names = (folder / MARKER).read_text(encoding="utf-8").removeprefix(_HEAD).splitlines()
    inside = [path for name in names if (path := _inside(folder, name)) is not None]
    for path in inside:
        path.unlink(missing_ok=True)
    if (folder / OWN).is_dir() and not (folder / OWN).is_symlink():
        shutil.rmtree(folder / OWN)
    for parent in sorted({parent for path in inside for parent in path.parents}, key=_depth, reverse=True):
        if (
            parent.is_dir()
            and parent != folder
            and parent.is_relative_to(folder)
            and not any(parent.iterdir())
        ):
            parent.rmdir()
    (folder / MARKER).unlink()


def _inside(folder: Path, name: str) -> Path | None:
    """Return the file of that name, unless the name or a link on the way leads out of the folder."""
    path = folder / name
    real = Path(os.path.realpath(path.parent))
    return path if real.is_relative_to(os.path.realpath(folder)) else None


def _depth(path: Path) -> int:
    return len(path.parts)

"""The folder of the demo: writes the made-up files of all agents, and removes them."""

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from retold.demo.claude import claude_files
from retold.demo.codex import codex_files
from retold.demo.gemini_files import gemini_files
from retold.demo.story import AgentName, Story, stories
from retold.demo.timeline import PROJECTS, File, StorySetting

MARKER = ".retold-demo"
OWN = "retold"
"""The name of the folder for the archive of the demo, which is removed with the demo."""
_HEAD = "# Made by `retold demo`, which may remove the files named below, and the folder `retold`.\n"


def is_demo(folder: Path) -> bool:
    """Return whether the demo made a folder."""
    try:
        return (folder / MARKER).read_text(encoding="utf-8").startswith(_HEAD)
    except (OSError, UnicodeDecodeError):
        return False


def demo_folder(own: Path) -> Path:
    """Return the folder of the demo for a RETOLD_HOME: the folder above if that is a demo itself, else one within."""
    return own.parent if own.name == OWN and is_demo(own.parent) else own / "demo"


def format_marker(names: Iterable[str]) -> str:
    """Return the content of the marker of a folder with these files."""
    return _HEAD + "".join(f"{name}\n" for name in names)


def remove_demo(folder: Path) -> None:
    """Remove the files of the demo and the folders that are empty then; leave everything else."""
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
    """Return the path of a file; None if its name, or a link in its path, leads out of the folder."""
    path = folder / name
    real = Path(os.path.realpath(path.parent))
    return path if real.is_relative_to(os.path.realpath(folder)) else None


def _depth(path: Path) -> int:
    return len(path.parts)


class OccupiedError(Exception):
    """The folder holds something that the demo did not make."""


class DemoHome(msgspec.Struct, frozen=True):
    """A demo that was made."""

    folder: Path
    conversations: Mapping[AgentName, int]
    projects: int

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables with which retold and the agents find this home and no other."""
        home = self.folder / "home"
        return {
            "RETOLD_HOME": str(self.folder / OWN),
            "GEMINI_CLI_HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "CODEX_HOME": str(home / ".codex"),
        }


def make_home(folder: Path, now: datetime) -> DemoHome:
    """Make the demo in a folder, in place of an earlier one; raise OccupiedError for a folder with anything else."""
    if is_demo(folder):
        remove_demo(folder)
    elif folder.exists() and not _is_empty(folder):
        raise OccupiedError(folder)
    played = stories()
    setting = StorySetting(folder, now)
    files = list(home_files(played, setting))
    (folder / OWN).mkdir(mode=0o700, parents=True, exist_ok=True)
    # Written first, so that the demo can be removed if this is interrupted.
    _write(folder / MARKER, format_marker(f"home/{file.path}" for file in files), now)
    for file in files:
        _write(setting.home / file.path, file.text, file.at)
    return DemoHome(
        folder, Counter(story.agent for story in played), len({story.project for story in played})
    )


def home_files(played: Sequence[Story], setting: StorySetting) -> Iterator[File]:
    """Yield every file that the stories leave in a home."""
    by_agent = {
        agent: [story for story in played if story.agent == agent] for agent in ("claude", "codex", "gemini")
    }
    yield from claude_files(by_agent["claude"], setting)
    yield from codex_files(by_agent["codex"], setting)
    yield from gemini_files(by_agent["gemini"], setting)
    for project, description in PROJECTS.items():
        yield File(f"code/{project}/README.md", f"# {project}\n\n{description}\n", setting.start("34 08:00"))


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _write(path: Path, text: str, at: datetime) -> None:
    """Write a new file, in new folders, that only its owner may read, with `at` as the time of its change."""
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir(mode=0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    os.utime(path, (at.timestamp(), at.timestamp()))

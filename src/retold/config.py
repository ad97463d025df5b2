"""The folder of the archive, and the settings in its `config.toml`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


CONFIG_FILE = "config.toml"
SETTINGS = ("exclude", "homes")


def retold_home(env: Mapping[str, str]) -> str:
    """Return the folder of the archive: `RETOLD_HOME`, or the platform's folder for data."""
    if chosen := env.get("RETOLD_HOME"):
        return chosen
    user = os.path.expanduser("~")
    if sys.platform == "darwin":
        return os.path.join(user, "Library", "Application Support", "retold")
    if sys.platform == "win32":
        return os.path.join(env.get("LOCALAPPDATA") or os.path.join(user, "AppData", "Local"), "retold")
    return os.path.join(env.get("XDG_DATA_HOME") or os.path.join(user, ".local", "share"), "retold")


class Config:
    """Homes of other machines by their labels, and excluded projects."""

    __slots__ = ("excluded", "homes", "unknown")

    def __init__(self, homes: dict[str, str], excluded: list[str], unknown: Sequence[str] = ()) -> None:
        self.homes, self.excluded = homes, excluded
        self.unknown = unknown
        """Settings in the file that do not exist."""


def read_config(folder: str) -> Config:
    """Return the settings in a folder; raises RetoldError for an invalid file."""
    from retold.archive.database import RetoldError

    text = _read_text(folder)
    if not text:
        return Config({}, [])
    settings = _parse(text, folder)
    homes, excluded = settings.get("homes", {}), settings.get("exclude", [])
    if not isinstance(homes, dict) or not all(isinstance(home, str) for home in homes.values()):
        raise RetoldError(
            f'{os.path.join(folder, CONFIG_FILE)}: [homes] needs lines such as laptop = "/backup/laptop"'
        )
    if not isinstance(excluded, list) or not all(isinstance(project, str) for project in excluded):
        raise RetoldError(
            f'{os.path.join(folder, CONFIG_FILE)}: exclude needs a list such as ["secret-project"]'
        )
    return Config(homes, excluded, [name for name in settings if name not in SETTINGS])


def save_home(folder: str, label: str, home: str) -> None:
    """Write a labelled home into the settings; the rest of the file stays as it is."""
    import tempfile

    from retold.archive.database import RetoldError

    path = os.path.realpath(home)
    if read_config(folder).homes.get(label) == path:
        return
    text = _with_home(_read_text(folder), label, path)
    if _parse(text, folder)["homes"][label] != path:
        raise RetoldError(f"{os.path.join(folder, CONFIG_FILE)}: [homes] could not be changed")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=folder, prefix=CONFIG_FILE)  # owner-only from the start
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(draft, os.path.join(folder, CONFIG_FILE))


def _read_text(folder: str) -> str:
    try:
        with open(os.path.join(folder, CONFIG_FILE), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _parse(text: str, folder: str) -> dict[str, Any]:
    import tomllib

    from retold.archive.database import RetoldError

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RetoldError(f"{os.path.join(folder, CONFIG_FILE)}: {error}") from error


def _with_home(text: str, label: str, home: str) -> str:
    import json
    import re

    name = json.dumps(label, ensure_ascii=False)  # a JSON string is a TOML string
    line = f"{name} = {json.dumps(home, ensure_ascii=False)}"
    old = re.compile(rf"^[ \t]*(?:{re.escape(name)}|{re.escape(label)})[ \t]*=.*$", re.MULTILINE)
    header = re.search(r"^\[homes\][^\n]*$", text, re.MULTILINE)
    if header is None:
        return f"{text.rstrip()}\n\n[homes]\n{line}\n".lstrip()
    before, after = text[: header.end()], text[header.end() :]
    return before + (old.sub(lambda _: line, after, count=1) if old.search(after) else f"\n{line}{after}")

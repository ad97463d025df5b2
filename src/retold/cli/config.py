"""`config.toml` in retold's own folder: what a person has told it to remember."""

import json
import os
import re
import tempfile
import tomllib
from pathlib import Path

NAME = "config.toml"


def labelled_homes(folder: Path) -> dict[str, str]:
    """Return the homes of other machines by their labels; raises ValueError for a file that is no TOML."""
    homes = tomllib.loads(_text(folder)).get("homes", {})
    return {label: home for label, home in homes.items() if isinstance(home, str)}


def keep_home(folder: Path, label: str, home: Path) -> None:
    """Remember a labelled home; everything else in the file stays as it was written."""
    wanted = str(home.resolve())
    if labelled_homes(folder).get(label) == wanted:
        return
    text = _with_home(_text(folder), label, wanted)
    if tomllib.loads(text)["homes"][label] != wanted:
        raise ValueError(f"{folder / NAME}: [homes] could not be changed")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=folder, prefix=NAME)  # owner-only from the start
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(draft).replace(folder / NAME)


def _text(folder: Path) -> str:
    try:
        return (folder / NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def _with_home(text: str, label: str, home: str) -> str:
    name = json.dumps(label, ensure_ascii=False)  # a JSON string is a TOML string
    line = f"{name} = {json.dumps(home, ensure_ascii=False)}"
    old = re.compile(rf"^[ \t]*(?:{re.escape(name)}|{re.escape(label)})[ \t]*=.*$", re.MULTILINE)
    header = re.search(r"^\[homes\][^\n]*$", text, re.MULTILINE)
    if header is None:
        return f"{text.rstrip()}\n\n[homes]\n{line}\n".lstrip()
    before, after = text[: header.end()], text[header.end() :]
    return before + (old.sub(lambda _: line, after, count=1) if old.search(after) else f"\n{line}{after}")

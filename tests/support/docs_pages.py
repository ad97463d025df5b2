"""Runs the code blocks of a documentation page in order, in an empty folder."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from support.real_gemini import UnavailableError

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MOST_SECONDS = 600
ZONE = "Pacific/Auckland"
"""The time zone in which pages are followed; its days differ from UTC days."""


class Block(NamedTuple):
    """A block of a page: its language, the file to write it to, and its text."""

    language: str
    file: str
    text: str


def page_blocks(page: str) -> list[Block]:
    """Return the code blocks of a page in `docs`, in order."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [Block(*found) for found in _BLOCK.findall(text)]


def follow_page(page: str, folder: Path, env: Mapping[str, str]) -> Iterator[list[tuple[Any, ...]]]:
    """Run the blocks of a page in a folder; yield the rows of each SQL block.

    Shell blocks use the `venv` in that folder once it exists. Raises UnavailableError if pip cannot install.
    """
    for block in page_blocks(page):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            _run(block.text, folder, env)
        elif block.language == "sql":
            yield _rows(block.text, folder)


def _run(text: str, folder: Path, env: Mapping[str, str]) -> None:
    programs = (folder / "venv" / "bin", Path(sys.executable).parent)
    path = os.pathsep.join((*map(str, programs), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env={**os.environ, "RETOLD": str(ROOT), **env, "PATH": path},
        capture_output=True,
        text=True,
        timeout=_MOST_SECONDS,
        check=False,
    )
    if done.returncode and "pip install" in text:
        raise UnavailableError(f"pip could not install: {done.stderr.strip()}")
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def _rows(text: str, folder: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute(f"SET file_search_path = '{folder}'; SET TimeZone = '{ZONE}'")
        return connection.execute(text).fetchall()

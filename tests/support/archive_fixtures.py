"""Fixtures with archives for the terminal browser; `conftest` exports them to every test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

if TYPE_CHECKING:
    from retold.tui.data import ArchiveQueries

# Imports are inside the fixtures, because other tests do not need the browser.


def _archived(env: dict[str, str], here: str) -> ArchiveQueries:
    from retold.tui.data import ArchiveQueries  # noqa: PLC0415
    from support.synced_archive import sync_archive  # noqa: PLC0415

    sync_archive(env["RETOLD_HOME"], env)
    return ArchiveQueries(env["RETOLD_HOME"], (), here)


@pytest.fixture(scope="session")
def demo_env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables of a demo home with an archive."""
    from retold.demo.home import make_home  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("browse") / "demo"
    env = make_home(folder, datetime.now(UTC)).variables | {"HOME": str(folder / "home")}
    _archived(env, str(folder))
    return env


@pytest.fixture
def demo(demo_env: dict[str, str], tmp_path: Path) -> Iterator[ArchiveQueries]:
    """The demo home's archive, opened from an empty folder."""
    from retold.tui.data import ArchiveQueries  # noqa: PLC0415

    with patch.dict(os.environ, demo_env):
        yield ArchiveQueries(demo_env["RETOLD_HOME"], (), str(tmp_path))


@pytest.fixture(scope="session")
def small_env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables of a home with three conversations and an archive."""
    from support.terminal_browser import OTHER, write_small_home  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("small")
    write_small_home(folder / "ann")
    env = {"HOME": str(folder / "ann"), "RETOLD_HOME": str(folder / "retold")}
    _archived(env, OTHER)
    return env


@pytest.fixture
def small(small_env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> ArchiveQueries:
    """An archive of three conversations at a fixed time, without a deletion warning."""
    from retold.tui.data import ArchiveQueries  # noqa: PLC0415
    from support.terminal_browser import NOW, OTHER  # noqa: PLC0415

    monkeypatch.setattr("retold.tui.app.now", lambda: NOW)
    monkeypatch.setattr("retold.tui.app.deletion_warning", lambda _: "")
    return ArchiveQueries(small_env["RETOLD_HOME"], (), OTHER)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> ArchiveQueries:
    """An archive of conversations whose texts try to control the terminal."""
    from support.terminal_browser import write_hostile_home  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("hostile")
    write_hostile_home(folder / "ann")
    return _archived({"HOME": str(folder / "ann"), "RETOLD_HOME": str(folder / "retold")}, "/home/ann")

"""The real Claude Code with `keep` installed: what was said is in the archive when it has ended."""

import os
from pathlib import Path

import pytest

from conftest import available
from keepers import Keeper
from persons import texts
from real_claude import NEWEST, installed_claude, made_place, require_isolation
from real_cli import cache_folder

pytestmark = pytest.mark.real_cli
ASKED = "where does the bittern hide?"


class Owner(Keeper):
    """Somebody whose Claude Code lives elsewhere."""

    @property
    def env(self) -> dict[str, str]:
        return super().env | {"CLAUDE_CONFIG_DIR": str(self.folder / "config")}


def test_claude_code_has_everything_archived(tmp_path: Path) -> None:
    with available():
        require_isolation()
        place = made_place(installed_claude(cache_folder(os.environ), NEWEST), NEWEST, tmp_path / "ann")
    owner = Owner(place.folder)
    assert owner.call("keep", "--install").code == 0
    native_id = place.ask(ASKED)
    owner.settle()
    assert ASKED in texts(owner.show(f"claude:{native_id}"))
    before = place.file(native_id).read_bytes()
    assert owner.call("keep", "--remove").code == 0
    assert place.file(native_id).read_bytes() == before
    assert not (place.config / "settings.json").exists()

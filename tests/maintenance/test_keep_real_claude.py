"""The real Claude Code with `keep` installed: what was said is in the archive when it has ended."""

import os
from pathlib import Path

import pytest

from conftest import available
from support.installed_script import InstalledPerson
from support.person import session_text
from support.real_claude import NEWEST, install_claude, make_claude_home, require_isolation
from support.real_gemini import cache_folder

pytestmark = pytest.mark.real_cli
ASKED = "where does the bittern hide?"


class Owner(InstalledPerson):
    """Somebody whose Claude Code lives elsewhere."""

    @property
    def env(self) -> dict[str, str]:
        return super().env | {"CLAUDE_CONFIG_DIR": str(self.folder / "config")}


def test_claude_code_has_everything_archived(tmp_path: Path) -> None:
    with available():
        require_isolation()
        place = make_claude_home(install_claude(cache_folder(os.environ), NEWEST), NEWEST, tmp_path / "ann")
    owner = Owner(place.folder)
    assert owner.call("keep", "--install").code == 0
    native_id = place.ask(ASKED)
    owner.settle()
    assert ASKED in session_text(owner.show(f"claude:{native_id}"))
    before = place.file(native_id).read_bytes()
    assert owner.call("keep", "--remove").code == 0
    assert place.file(native_id).read_bytes() == before
    assert not (place.config / "settings.json").exists()

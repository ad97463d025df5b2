"""`retold` as an installed script, and other programs that a test puts on the PATH."""

import os
import subprocess
import sys
import time
from pathlib import Path

import retold
from retold.synchronization.update import try_lock
from support.person import CommandResult, Person

SCRIPT = """#!{python}
import sys
sys.path.insert(0, {source!r})
from retold.cli.main import command
sys.exit(command())
"""
PROGRAM = "#!{python}\nimport os, sys\nfrom pathlib import Path\nhere = Path(__file__).parent\n{code}\n"
WAIT = 60.0


class InstalledPerson(Person):
    """A person whose PATH contains only `retold` and the programs that a test adds."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.programs = folder.with_name(f"{folder.name}-bin")
        self.programs.mkdir()
        source = str(Path(retold.__file__).parents[1])
        self.retold = self._executable("retold", SCRIPT.format(python=sys.executable, source=source))

    @property
    def env(self) -> dict[str, str]:
        return super().env | {"PATH": str(self.programs)}

    def program(self, name: str, code: str) -> Path:
        """Put a Python program on the PATH."""
        return self._executable(name, PROGRAM.format(python=sys.executable, code=code))

    def _executable(self, name: str, text: str) -> Path:
        path = self.programs / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def call(self, *arguments: str) -> CommandResult:
        """Run the `retold` script."""
        done = subprocess.run(
            [str(self.retold), *arguments],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)

    def settle(self) -> None:
        """Wait until no background sync of a hook is pending or running."""
        ends = time.monotonic() + WAIT
        while not self._is_idle():
            assert time.monotonic() < ends, "a hook's work does not end"
            time.sleep(0.05)

    def _is_idle(self) -> bool:
        if (self.archive / "keep.asked").exists() or not (self.archive / "keep.lock").exists():
            return False
        with (self.archive / "keep.lock").open("r+b") as lock:
            return try_lock(lock.fileno())


def file_tree(folder: Path) -> dict[str, tuple[int, bytes | str | None]]:
    """Return everything below a folder: modes, contents of files, and targets of links."""
    found: dict[str, tuple[int, bytes | str | None]] = {}
    for path in sorted(folder.rglob("*")):
        held = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = (path.lstat().st_mode, held)
    return found

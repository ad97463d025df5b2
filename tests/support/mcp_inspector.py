"""A program of others that asks a server of the Model Context Protocol: the Inspector.

What npm installs goes where `real_cli` keeps the Gemini CLI.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.real_gemini import UnavailableError, install_once

INSPECTOR = "2.12.0"
RUN_SECONDS = 120
_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--silent")

Json = dict[str, Any]


def install_package(cache: Path, name: str, version: str) -> Path:
    """Return the folder of a package of the protocol's own."""
    if shutil.which("npm") is None:
        raise UnavailableError("not on PATH: npm")
    folder = cache / f"mcp-{name}-{version}"
    package = f"@modelcontextprotocol/{name}@{version}"
    install_once(folder, ("npm", "install", "--prefix", str(folder), *_OPTIONS, package), {})
    return folder / "node_modules" / "@modelcontextprotocol" / name


class Inspector:
    """The Inspector of the protocol's makers, on the command line."""

    def __init__(self, package: Path, home: Path) -> None:
        self._program = package / "clients" / "launcher" / "build" / "index.js"
        self._home = home

    def asked(self, arguments: Sequence[str]) -> Json:
        """Return what a server answers; it must be content with it."""
        done = subprocess.run(
            ["node", str(self._program), "--cli", *arguments],
            env={"HOME": str(self._home), "PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: Json = json.loads(done.stdout)
        return found

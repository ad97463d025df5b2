"""The MCP Inspector, a command-line client by the authors of the Model Context Protocol.

npm installs it into the same cache as the Gemini CLI (`real_gemini.cache_folder`).
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
    """Install an npm package of the Model Context Protocol once, and return its folder."""
    if shutil.which("npm") is None:
        raise UnavailableError("not on PATH: npm")
    folder = cache / f"mcp-{name}-{version}"
    package = f"@modelcontextprotocol/{name}@{version}"
    install_once(folder, ("npm", "install", "--prefix", str(folder), *_OPTIONS, package), {})
    return folder / "node_modules" / "@modelcontextprotocol" / name


class Inspector:
    """Runs the MCP Inspector on the command line."""

    def __init__(self, package: Path, home: Path) -> None:
        self._program = package / "clients" / "launcher" / "build" / "index.js"
        self._home = home

    def asked(self, arguments: Sequence[str]) -> Json:
        """Run the Inspector with these arguments and return its JSON output; it must exit with 0."""
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

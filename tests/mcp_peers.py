"""Programs of others that ask a server of the Model Context Protocol: the Inspector and the conformance suite.

What npm installs goes where `real_cli` keeps the Gemini CLI.
"""

import shutil
from pathlib import Path
from typing import Any

from real_cli import UnavailableError, install_once

INSPECTOR, CONFORMANCE = "2.12.0", "0.1.16"
RUN_SECONDS = 120
_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--silent")

Json = dict[str, Any]


def installed(cache: Path, name: str, version: str) -> Path:
    """Return the folder of a package of the protocol's own."""
    if shutil.which("npm") is None:
        raise UnavailableError("not on PATH: npm")
    folder = cache / f"mcp-{name}-{version}"
    package = f"@modelcontextprotocol/{name}@{version}"
    install_once(folder, ("npm", "install", "--prefix", str(folder), *_OPTIONS, package), {})
    return folder / "node_modules" / "@modelcontextprotocol" / name

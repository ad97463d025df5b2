"""Programs from the package index, each in a virtual environment of its own: installed once, outside the repository."""

import sys
from pathlib import Path

from support.real_gemini import install_once

_INSTALL = """
import subprocess, sys
folder, wanted = sys.argv[1:]
subprocess.run([sys.executable, "-m", "venv", folder], check=True)
subprocess.run([f"{folder}/bin/pip", "install", "-q", wanted], check=True)
"""


def install_program(cache: Path, name: str, package: str, version: str) -> Path:
    """Return a program, in an environment in which it may have whatever versions it needs; raises UnavailableError."""
    folder = cache / f"{name}-{version}"
    venv = folder / "venv"
    install_once(folder, (sys.executable, "-c", _INSTALL, str(venv), f"{package}=={version}"), {})
    return venv / "bin" / name

"""Programs from PyPI, each installed once into its own virtual environment, outside the repository."""

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
    """Install a program into its own virtual environment and return its path; raises UnavailableError."""
    folder = cache / f"{name}-{version}"
    venv = folder / "venv"
    install_once(folder, (sys.executable, "-c", _INSTALL, str(venv), f"{package}=={version}"), {})
    return venv / "bin" / name

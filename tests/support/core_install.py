"""retold as its wheel installs it, in an environment that has its required packages and no other."""

import os
import re
import subprocess
import sys
import tarfile
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Built(NamedTuple):
    """The wheel and the sdist of the package."""

    wheel: Path
    sdist: Path


class Installed(NamedTuple):
    """An environment with the command, and the variables of a demo home beside it."""

    program: Path
    packages: tuple[str, ...]
    site: Path
    env: dict[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command on the demo home."""
        return subprocess.run(
            [self.program, *arguments],
            env=self.env,
            cwd=self.site,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )


def build(folder: Path) -> Built:
    """Build the sdist from the repository, and the wheel from the sdist."""
    _hatch(ROOT, "sdist", folder)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    _hatch(unpacked, "wheel", folder)
    (wheel,) = folder.glob("*.whl")
    return Built(wheel, sdist)


def _hatch(source: Path, target: str, folder: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder],
        cwd=source,
        capture_output=True,
        check=True,
    )


def install_core(wheel: Path, folder: Path) -> Installed:
    """Install a wheel without the index: its required packages are linked from the environment of the tests."""
    environment = venv.EnvBuilder(with_pip=False, symlinks=os.name != "nt")
    environment.create(folder / "venv")
    binaries = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", binaries / "python", "install", "-q", "--no-deps", "--no-index", wheel],
        capture_output=True,
        check=True,
    )  # fmt: skip
    (site,) = (
        path.parent for path in (folder / "venv").rglob("retold") if path.parent.name == "site-packages"
    )
    (metadata,) = site.glob("retold-*.dist-info")
    packages = required_packages(Distribution.at(metadata))
    for name in packages:
        for file in distribution(name).files or ():
            if ".." in file.parts or file.suffix == ".pyc":
                continue
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(distribution(name).locate_file(file))  # type: ignore[arg-type]
    env = {
        "HOME": str(folder),
        "RETOLD_HOME": str(folder / "retold"),
        "PATH": os.environ["PATH"],
        "TZ": "UTC",
    }
    installed = Installed(binaries / "retold", packages, site, env)
    demo = installed.run("demo", str(folder / "demo")).stdout
    env.update(re.findall(r"^export (\w+)=(\S+)$", demo, re.MULTILINE))
    return installed


def required_packages(package: Distribution) -> tuple[str, ...]:
    """Return the packages that this one requires without an extra, and those that they require."""
    names: dict[str, None] = {}
    waiting = [package]
    while waiting:
        for line in waiting.pop().requires or ():
            requirement, _, condition = line.partition(";")
            name = re.split(r"[^\w.-]", requirement.strip())[0]
            if name not in names and "extra" not in condition and "PyPy" not in condition:
                names[name] = None
                waiting.append(distribution(name))
    return tuple(names)

"""The package as people install it: what the core has, what each extra adds, and what is said where one is missing."""

import ast
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from importlib.metadata import distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest

import retold
from conftest import available, unavailable
from retold.extras import EXTRAS
from support.core_install import ROOT, Built, Installed, build, install_core
from support.pip_programs import install_program
from support.real_gemini import cache_folder

MOST_BYTES = 50_000_000
CORE_MODULES = {"apsw", "msgspec", "zstandard"}
UNEXPLAINED = {"genai_prices"}
"""Optional modules for which retold has something in their place and asks for nothing."""
NEEDY = [
    (("web", "--no-browser"), "web"),
    (("mcp",), "mcp"),
    (("connect", "claude", "--yes"), "mcp"),
    (("export", "--all", "--format", "html", "-o", "pages"), "html"),
    (("export", "--all", "--format", "parquet", "-o", "tables"), "parquet"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    if find_spec("hatchling") is None:
        unavailable("not installed: hatchling")
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def core(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    installed = install_core(built.wheel, tmp_path_factory.mktemp("core"))
    done = installed.run("sync")
    assert done.returncode == 0, done.stderr
    return installed


def metadata(built: Built) -> Message:
    with zipfile.ZipFile(built.wheel) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(wheel.read(name).decode())


def project() -> dict[str, dict[str, list[str]]]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, dict[str, list[str]]] = tomllib.loads(text)["project"]
    return found


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", one)[0].lower() for one in requirements}


def test_the_wheel_has_the_files_of_the_package_and_nothing_else(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    here = {path.relative_to(source).as_posix() for path in (source / "retold").rglob("*") if path.is_file()}
    assert packed == {name for name in here if "__pycache__" not in name}


def test_the_sdist_has_what_the_tests_and_pages_need_and_no_leftovers(built: Built) -> None:
    with tarfile.open(built.sdist) as sdist:
        packed = {name.partition("/")[2] for name in sdist.getnames()}
    assert {
        "LICENSE",
        "Makefile",
        "README.md",
        "pyproject.toml",
        "docs/install.md",
        "tests/conftest.py",
    } <= packed
    assert not {name for name in packed if "__pycache__" in name or ".venv" in name}


def test_the_metadata_is_complete_and_has_the_version_of_the_package(built: Built, core: Installed) -> None:
    found = metadata(built)
    assert found["Version"] == retold.__version__
    assert core.run("--version").stdout == f"retold {retold.__version__}\n"
    for field in (
        "Summary",
        "Author",
        "License-Expression",
        "Keywords",
        "Requires-Python",
        "Description-Content-Type",
    ):
        assert found[field], field
    assert set(found.get_all("Provides-Extra") or ()) >= {*EXTRAS, "all", "prices"}


def test_the_core_is_small(core: Installed) -> None:
    assert set(core.packages) == CORE_MODULES
    size = sum(path.stat().st_size for path in core.site.rglob("*") if path.is_file())
    assert size <= MOST_BYTES, f"{size:,} bytes"


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("list", "-n", "3"), 0, "claude|codex|gemini"),
        (("search", "time zone"), 0, "mira-notes|ladle|crumb|hearth"),
        (("stats",), 0, r"genai-prices \S+ \(copy\)"),
        (("stats", "--by", "model", "--json"), 0, r'"cost_usd":"[1-9]\d*\.\d+"'),
        (("doctor",), 1, "claude|codex|gemini"),
        (("sql", "SELECT count(*) AS n FROM sessions"), 0, r"\d\d"),
        (("brief", "ladle"), 0, "ladle"),
        (("events", "--json"), 0, '"event":'),
        (("export", "--all", "--format", "csv"), 0, "gemini:"),
        (("keep", "--install", "--dry-run"), 0, "--hook"),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, tuple) else "",
)
def test_the_core_runs(core: Installed, arguments: tuple[str, ...], code: int, expected: str) -> None:
    if arguments[0] == "events":
        key = core.run("sql", "SELECT session FROM sessions LIMIT 1", "--csv").stdout.split()[-1]
        arguments = ("events", key, "--json")
    done = core.run(*arguments)
    assert done.returncode == code, done.stderr
    assert re.search(expected, done.stdout), done.stdout
    assert "Error" not in done.stderr


def test_the_core_shows_and_exports(core: Installed, tmp_path: Path) -> None:
    key = core.run("sql", "SELECT session FROM sessions LIMIT 1", "--csv").stdout.split()[-1]
    assert core.run("show", key).returncode == 0
    for form in ("md", "json"):
        done = core.run("export", "--all", "--format", form, "-o", str(tmp_path / form))
        assert done.returncode == 0, done.stderr
        assert any((tmp_path / form).iterdir())


@pytest.mark.parametrize(
    ("arguments", "extra"), NEEDY, ids=lambda value: value[0] if isinstance(value, tuple) else value
)
def test_a_command_without_its_packages_names_the_line_that_installs_them(
    core: Installed, arguments: tuple[str, ...], extra: str
) -> None:
    done = core.run(*arguments)
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1].endswith(f" needs more packages: pip install 'retold[{extra}]'")
    assert "internal error" not in done.stderr
    assert not (core.site / "pages").exists()
    assert not (core.site / "tables").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_browse_names_the_line_that_installs_its_packages(core: Installed) -> None:
    own, its = os.openpty()
    done = subprocess.run(
        [core.program, "browse"], env=core.env, stdin=its, stdout=its, stderr=subprocess.PIPE, check=False
    )
    os.close(own)
    os.close(its)
    assert done.returncode == 4
    assert done.stderr == b"retold: the terminal browser needs more packages: pip install 'retold[tui]'\n"


@pytest.mark.parametrize(
    ("mark", "line"), [("pipx_metadata.json", "pipx install --force"), ("uv-receipt.toml", "uv tool install")]
)
def test_the_line_is_for_the_program_that_installed_retold(core: Installed, mark: str, line: str) -> None:
    file = core.program.parents[1] / mark
    file.touch()
    try:
        assert core.run("mcp").stderr.endswith(f": {line} 'retold[mcp]'\n")
    finally:
        file.unlink()


def test_the_library_names_the_line_that_installs_spark(core: Installed) -> None:
    code = "import retold.lake.spark"
    done = subprocess.run(
        [core.program.with_name("python"), "-c", code], capture_output=True, text=True, check=False
    )
    assert (
        "ImportError: Spark needs more packages: pip install 'retold[spark]', and Java 17 or later"
        in done.stderr
    )


def test_every_package_that_is_imported_is_required_or_explained() -> None:
    imported = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported.add(str(node.module).partition(".")[0])
    explained = {module for _, modules in EXTRAS.values() for module in modules}
    assert imported - set(sys.stdlib_module_names) - {"retold"} == CORE_MODULES | UNEXPLAINED | explained


def test_each_extra_requires_the_packages_of_its_modules() -> None:
    known = packages_distributions()
    extras = project()["optional-dependencies"]
    for extra, (_, modules) in EXTRAS.items():
        required = names(extras[extra])
        required |= names([one for name in required for one in distribution(name).requires or ()])
        missing = {module for module in modules if not {one.lower() for one in known[module]} & required}
        assert not missing, extra
    assert not {"parquet", "spark"} & set(extras["all"][0].partition("[")[2].rstrip("]").split(","))


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
@pytest.mark.parametrize(("installer", "version"), [("pip", None), ("uv", "0.13.8"), ("pipx", "1.18.4")])
def test_a_new_user_installs_tries_and_uninstalls(built: Built, installer: str, version: str | None) -> None:
    env = dict(os.environ)
    if version is not None:
        with available():
            program = install_program(cache_folder(os.environ), installer, installer, version)
        env["PATH"] = os.pathsep.join([str(program.parent), env["PATH"]])
    script = ROOT / "scripts" / "try_install.sh"
    done = subprocess.run(
        ["sh", script, installer, built.wheel], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"{installer}: all as expected\n")

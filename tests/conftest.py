"""Fixtures that every test may ask for: the shared folder, the real CLI and its loader, ccusage, a real browser, Spark.

Where one of them cannot be had a test is skipped, with one line that says why; where `CI` is set it fails instead.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser

from support.archive_fixtures import demo, demo_env, hostile, small, small_env  # noqa: F401 - fixtures
from support.ccusage import Ccusage, install_ccusage
from support.chromium import install_axe, start_chromium
from support.real_gemini import (
    Driver,
    Finished,
    Gemini,
    Oracle,
    RealCli,
    Record,
    UnavailableError,
    cache_folder,
    install_oracle,
    load_with_oracle,
    missing_programs,
    shared_folder,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.register_assert_rewrite("synced")
# How long an example takes to make or to try says more about the machine than about the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Try twice what a busy machine may upset: what is done with a real CLI or a real browser, in CI any test.

    What fails twice is a fault. What was right only the second time is named in the summary, as RERUN.
    """
    for item in items:
        if os.environ.get("CI") or {"driven_gemini", "browser"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.flaky(reruns=1))


def unavailable(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@contextmanager
def available() -> Iterator[None]:
    try:
        yield
    except UnavailableError as error:
        unavailable(str(error))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real browser."""
    with available(), start_chromium() as started:
        yield started


@pytest.fixture(scope="session")
def axe() -> str:
    """What looks for that which shuts people out, to be run in a page."""
    if shutil.which("npm") is None:
        unavailable("not on PATH: npm")
    with available():
        return install_axe(cache_folder(os.environ))


@pytest.fixture(scope="session")
def java() -> None:
    """Java, for a Spark that a test starts itself."""
    from support.spark_cluster import require_java  # noqa: PLC0415 - most tests need none

    with available():
        require_java()


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A Spark with executors that are processes of their own."""
    from support.spark_cluster import start_spark  # noqa: PLC0415 - most tests need none

    with available(), start_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="session")
def shared() -> Path:
    folder = shared_folder()
    if not folder.is_dir():
        unavailable("no ../shared beside the repository")
    return folder


@pytest.fixture(scope="session")
def real_cli(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> RealCli:
    if missing := missing_programs():
        unavailable(f"not on PATH: {', '.join(missing)}")
    return RealCli(shared, cache_folder(os.environ), tmp_path_factory.mktemp("real-cli"))


@pytest.fixture(scope="session")
def oracle(real_cli: RealCli) -> Oracle:
    with available():
        script = install_oracle(real_cli.shared, real_cli.cache)

    def loaded(files: Sequence[Path]) -> list[Record]:
        return load_with_oracle(script, files)

    return loaded


@pytest.fixture(scope="session")
def real_gemini(real_cli: RealCli) -> Gemini:
    def run(version: str, home: Path, project: Path, *arguments: str) -> Finished:
        with available():
            return real_cli.run(version, home, project, *arguments)

    return run


@pytest.fixture(scope="session")
def driven_gemini(real_cli: RealCli) -> Driver:
    def drive(version: str, home: Path, project: Path, script: str) -> Finished:
        with available():
            return real_cli.drive(version, home, project, script)

    return drive


@pytest.fixture(scope="session")
def ccusage() -> Ccusage:
    with available():
        return Ccusage(install_ccusage(cache_folder(os.environ)))

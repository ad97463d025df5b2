"""Fixtures for all tests, the order of the suite, and the marks that it gives by itself.

Where the shared folder, a real CLI, a browser or Spark is missing, a test is skipped and says why; where `CI` is set
it fails instead.
"""

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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

# The time that an example takes depends on the machine, not on the code.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# Texts for people have local times, so the tests run in one time zone, wherever the machine is.
os.environ["TZ"] = "UTC"
if hasattr(time, "tzset"):
    time.tzset()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # `nohup` and shells without job control start us so, and every child would ignore Ctrl-C as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)

FOREIGN_MARKS = frozenset({"real_cli", "peer", "spark", "bucket", "chromium", "heavy"})
FOREIGN_FIXTURES = frozenset({"axe", "browser", "inspector", "java", "oracle", "real_cli"})
"""Marks and fixtures of tests that run a program of others: an agent, a browser, Spark, an object store."""
TYPING_FIXTURES = frozenset({"browser", "driven_gemini"})
"""Fixtures of tests that type into a real program, which a busy machine may upset."""


def pytest_xdist_auto_num_workers() -> int:
    """Start two workers per core: about half of the time tests wait for other programs; with three, browsers were late."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by what they run; on workers, begin with the files that take longest."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if FOREIGN_FIXTURES & fixtures or any(item.get_closest_marker(mark) for mark in FOREIGN_MARKS):
            item.add_marker("foreign")
        if TYPING_FIXTURES & fixtures:
            # What fails twice is a fault. What passed only the second time is listed in the summary, as RERUN.
            item.add_marker(pytest.mark.flaky(reruns=1))
    if hasattr(config, "workerinput"):
        items.sort(key=_files_by_length(items))


def _files_by_length(items: Sequence[pytest.Item]) -> Callable[[pytest.Item], tuple[bool, bool, int, str]]:
    """Return a sort key: files that run programs of others come first, then slow ones, then those with the most tests."""
    files = Counter(item.path for item in items)
    foreign, slow = (
        {item.path for item in items if item.get_closest_marker(mark)} for mark in ("foreign", "slow")
    )
    return lambda item: (item.path not in foreign, item.path not in slow, -files[item.path], str(item.path))


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
    """The script of axe, which finds barriers to accessibility in a page."""
    if shutil.which("npm") is None:
        unavailable("not on PATH: npm")
    with available():
        return install_axe(cache_folder(os.environ))


@pytest.fixture(scope="session")
def java() -> None:
    """Java, for tests that start Spark themselves."""
    from support.spark_cluster import require_java  # noqa: PLC0415 - most tests need none

    with available():
        require_java()


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A Spark session whose executors are processes of their own."""
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

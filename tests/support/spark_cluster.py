"""Runs Spark with executors on this machine, which end with the Spark session."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import retold
from retold.lake.spark import RetoldDataSource
from support.real_gemini import UnavailableError

CLUSTER = "local-cluster[2,1,1024]"
OLDEST_JAVA = 17
QUIET = (
    # Spark 4.3 warns that it is not tested with pandas 3; nothing here uses pandas.
    "ignore:PySpark does not yet fully support pandas:FutureWarning",
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)
"""Filters for warnings that Spark itself causes."""
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""Options of Java: to compile for speed takes longer than these tests run."""
EXECUTOR_CLASS = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@contextmanager
def start_spark(folder: Path, master: str = CLUSTER, **settings: str) -> Iterator[SparkSession]:
    """Start Spark with all its files below a folder; raises UnavailableError without Java."""
    require_java()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _environment(folder).items():
            patch.setenv(name, value)
        builder = SparkSession.builder.master(master)
        for name, value in {**_settings(folder), **settings}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            session.sparkContext.setLogLevel("ERROR")
            session.dataSource.register(RetoldDataSource)
            yield session
        finally:
            session.stop()
            _end_gateway()


def require_java() -> None:
    """Raise UnavailableError if there is no Java that Spark runs on."""
    program = shutil.which("java")
    told = (
        ""
        if program is None
        else subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    )
    version = re.search(r'version "(\d+)', told)
    if version is None or int(version[1]) < OLDEST_JAVA:
        raise UnavailableError(f"no Java {OLDEST_JAVA} or later on PATH")


def _environment(folder: Path) -> dict[str, str]:
    paths = [str(Path(retold.__file__).parents[1]), str(Path(__file__).parents[1])]
    return {
        "SPARK_HOME": str(_spark_home(folder / "home")),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),
    }


def _spark_home(folder: Path) -> Path:
    """Return a folder with links to the Spark installation, in which Spark's workers can write."""
    folder.mkdir(parents=True)
    for entry in Path(pyspark.__file__).parent.iterdir():
        (folder / entry.name).symlink_to(entry)
    return folder


def _settings(folder: Path) -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder} {QUICK_START}",
        "spark.executor.extraJavaOptions": QUICK_START,
        "spark.ui.showConsoleProgress": "false",
    }


def _end_gateway() -> None:
    """End Spark's Java process, which otherwise runs until Python exits."""
    gateway = SparkContext._gateway  # noqa: SLF001 - there is no public API
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


def executor_pids(spark: SparkSession) -> list[int]:
    """Return the process ids of this Spark session's executors."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - there is no public API
    assert gateway is not None
    return [pid for pid in _below(gateway.proc.pid) if EXECUTOR_CLASS in _command(pid)]


def _below(pid: int) -> list[int]:
    text = "".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    children = [int(one) for one in text.split()]
    return children + [inner for child in children for inner in _below(child)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""

"""Small files by way of Spark's own driver: what its readers pass over, as their names begin with a dot."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from retold.lake.held import ListedFile

OPENERS = 16
"""How many files are opened at once: most of that time is waiting."""
LARGEST_LISTING = 256 << 20
"""Of what the driver takes in: registries, markers and logs of prompts."""


class Hadoop:
    """Any file system that this Spark reaches."""

    def __init__(self, spark: SparkSession) -> None:
        # There is no other way to a file system that only Spark knows.
        self._jvm: Any = spark._jvm  # noqa: SLF001
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
        self._settings: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001

    def files(self, addresses: Iterable[str]) -> dict[str, ListedFile | str]:
        """Return the files that are there, with their content, or with why that cannot be had."""
        asked = list(addresses)
        with ThreadPoolExecutor(OPENERS) as pool:
            found = zip(asked, pool.map(self._file, asked), strict=True)
            return {address: held for address, held in found if held is not None}

    def _file(self, address: str) -> ListedFile | str | None:
        try:
            path = self._jvm.org.apache.hadoop.fs.Path(address)
            system = path.getFileSystem(self._settings)
            status = system.getFileStatus(path)
            if status.isDirectory():
                return None
            if status.getLen() > LARGEST_LISTING:
                return f"larger than {LARGEST_LISTING:,} bytes, which is what the driver takes in at most"
            return self._read(system, path, status)
        except Py4JJavaError as error:
            thrown = error.java_exception
            is_none_there = is_instance_of(self._gateway, thrown, "java.io.FileNotFoundException")
            return None if is_none_there else str(thrown.toString())
        except (Py4JError, PySparkException) as error:  # PySpark makes its own of some that Java throws
            return str(error)

    @staticmethod
    def _read(system: Any, path: Any, status: Any) -> ListedFile:
        stream = system.open(path)
        try:
            data = bytes(stream.readAllBytes())
        finally:
            stream.close()
        return ListedFile(len(data), status.getModificationTime() * 1_000_000, data)

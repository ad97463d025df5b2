"""Small files by way of Spark's own driver: what its readers pass over, as their names begin with a dot."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from retold.lake.held import Held

OPENERS = 16
"""How many files are opened at once: most of that time is waiting."""
LARGEST = 256 << 20
"""Of what the driver takes in: registries, markers and logs of prompts."""


class Hadoop:
    """Any file system that this Spark reaches."""

    def __init__(self, spark: SparkSession) -> None:
        # There is no other way to a file system that only Spark knows.
        self._jvm: Any = spark._jvm  # noqa: SLF001
        self._settings: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001

    def files(self, addresses: Iterable[str]) -> dict[str, Held]:
        """Return the files that are there, with their content."""
        asked = list(addresses)
        with ThreadPoolExecutor(OPENERS) as pool:
            found = zip(asked, pool.map(self._file, asked), strict=True)
            return {address: held for address, held in found if held is not None}

    def _file(self, address: str) -> Held | None:
        try:
            path = self._jvm.org.apache.hadoop.fs.Path(address)
            system = path.getFileSystem(self._settings)
            status = system.getFileStatus(path)
            if status.isDirectory() or status.getLen() > LARGEST:
                return None
            stream = system.open(path)
            try:
                data = bytes(stream.readAllBytes())
            finally:
                stream.close()
            return Held(len(data), status.getModificationTime() * 1_000_000, data)
        except Py4JError:  # none there, or none that may be read
            return None

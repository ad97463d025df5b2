"""The same reader on Spark: `spark.dataSource.register(RetoldDataSource)`, then `spark.read.format("retold")`."""

try:
    import pyspark  # noqa: F401 - to say what is missing, before anything else does
except ImportError as error:
    raise ImportError(
        "Spark is not installed: pip install 'retold[spark]'; it needs Java 17 or later"
    ) from error

from retold.lake.spark.files import from_files
from retold.lake.spark.source import RetoldDataSource, settled, spread

__all__ = ["RetoldDataSource", "from_files", "settled", "spread"]

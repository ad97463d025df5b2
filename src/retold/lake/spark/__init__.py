"""Tables on Spark: `spark.dataSource.register(RetoldDataSource)`, then `spark.read.format("retold")`."""

try:
    import pyspark  # noqa: F401 - to name what is missing before another import fails
except ImportError as error:
    raise ImportError(
        "Spark is not installed: pip install 'retold[spark]'; it needs Java 17 or later"
    ) from error

from retold.lake.spark.files import from_files
from retold.lake.spark.source import RetoldDataSource, deduplicate, find_split_conversations

__all__ = ["RetoldDataSource", "deduplicate", "find_split_conversations", "from_files"]

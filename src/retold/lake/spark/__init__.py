"""Tables on Spark: `spark.dataSource.register(RetoldDataSource)`, then `spark.read.format("retold")`."""

from retold.extras import describe_extra

try:  # name what is missing before another import fails
    import pyarrow as pa  # noqa: F401
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError(f"{describe_extra('spark')}, and Java 17 or later") from error

from retold.lake.spark.files import from_files
from retold.lake.spark.source import RetoldDataSource, deduplicate, find_split_conversations

__all__ = ["RetoldDataSource", "deduplicate", "find_split_conversations", "from_files"]

"""Sessions as tables: Arrow, Parquet, and the same reader on Spark."""

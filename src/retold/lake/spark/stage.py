"""The second stage: what only all sessions together tell."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from retold.lake.spread import Spread, encoded

EARLIEST = ("session_started_at", "session_ended_at", "session")
"""By what the sessions that hold a request are put in order: the first has it."""


def settled(rows: DataFrame) -> DataFrame:
    """Return each request once, that of the earliest session that holds it; of sessions, each conversation once.

    Takes the table `requests` or `sessions`, with all of its columns or with those that tell.
    """
    if "request" in rows.columns:
        order = [f.col(name).asc_nulls_last() for name in EARLIEST]
        return _first(rows, ("request",), order)
    # Files of one conversation whose names do not tell so: the session of the larger ones stands for it.
    return _first(rows, ("agent", "conversation"), [f.col("source_bytes").desc(), f.col("session").asc()])


def spread(sessions: DataFrame) -> str:
    """Return the conversations that several rows of the table `sessions` tell, for the option `together`.

    Whoever loads a table with it gets each of them from one job, joined as an archive joins them.
    """
    told = sessions.groupBy("agent", "conversation").agg(
        f.count(f.lit(1)).alias("rows"), f.flatten(f.collect_list("sources.path")).alias("paths")
    )
    several = told.where("rows > 1").orderBy("agent", "conversation").collect()
    return encoded(Spread(row.agent, row.conversation, tuple(sorted(set(row.paths)))) for row in several)


def _first(rows: DataFrame, by: tuple[str, ...], order: list[Column]) -> DataFrame:
    place = f.row_number().over(Window.partitionBy(*by).orderBy(*order))
    return rows.withColumn("_place", place).where(f.col("_place") == 1).drop("_place")

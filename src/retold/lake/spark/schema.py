"""The tables as Spark has them."""

from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from retold.lake.arrow import schema_of
from retold.lake.batches import TableRequest
from retold.lake.spark.options import parse_columns
from retold.model.tables import TABLES


def spark_schema(table: str, columns: tuple[str, ...]) -> StructType:
    """Return the schema of some columns of a table, with what each means as its comment."""
    docs = {column.name: {"comment": column.doc} for column in TABLES[table].columns}
    fields = from_arrow_schema(schema_of(table, columns), prefer_timestamp_ntz=False)
    return StructType([StructField(one.name, one.dataType, one.nullable, docs[one.name]) for one in fields])


def wanted_of(table: str, schema: StructType) -> TableRequest:
    """Return what a schema wants of a table; raises ValueError for columns that it has not, or has otherwise."""
    columns = parse_columns(table, schema.names)
    for own, asked in zip(spark_schema(table, columns), schema, strict=True):
        if own.dataType.simpleString() != asked.dataType.simpleString():
            kinds = f"is {own.dataType.simpleString()}, not {asked.dataType.simpleString()}"
            raise ValueError(f"the column {own.name!r} of {table} {kinds}")
    return TableRequest(table, to_arrow_schema(schema, timezone="UTC"))

"""The columns of SELECTs in the one table that workers give back.

The rows of all rules of a backfill come out of one pass, and so in one table. Its columns have numbers, so
many of each type as the rule with most of them needs: `bigint_0`, `bigint_1`, `string_0`. A row holds its
values themselves, so no text is written and parsed between the worker and the rule's own table, and a hundred
rules do not make it wider than one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from sql import Plan
from sql.types import Type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

TYPES = {
    Type.INTEGER: "BIGINT",
    Type.FLOAT: "DOUBLE",
    Type.STRING: "STRING",
    Type.BOOLEAN: "BOOLEAN",
    Type.BYTES: "BINARY",
}
"""Types that a column has in Spark too. Columns of other types hold JSON text."""

WHOLE = {"row": Type.ANY}
"""The only column of a rule whose columns the messages decide: the row as JSON."""


def columns_of(plan: Plan) -> dict[str, Type]:
    """The columns that the rows of a rule have in its table."""
    return WHOLE if plan.columns_with_states is None else plan.columns_with_states


def slots_of(columns: Mapping[str, Type]) -> dict[str, str]:
    """By column of a rule the one of the common table.

    >>> slots_of({"dev": Type.STRING, "n": Type.INTEGER, "all": Type.ARRAY})
    {'dev': 'string_0', 'n': 'bigint_0', 'all': 'string_1'}
    """
    used: Counter[str] = Counter()
    found = {}
    for name, kind in columns.items():
        sql_type = TYPES.get(kind, "STRING")
        found[name] = f"{sql_type.lower()}_{used[sql_type]}"
        used[sql_type] += 1
    return found


def definitions(plans: Iterable[Plan]) -> str:
    """The columns that the common table has for the rows of these rules, as DDL."""
    needed = {slot for plan in plans for slot in slots_of(columns_of(plan)).values()}
    return "".join(f", {slot} {slot.partition('_')[0].upper()}" for slot in sorted(needed))


def arrow_type(sql_type: str) -> pa.DataType:
    """The type that Arrow has for one of Spark.

    >>> arrow_type("BIGINT"), arrow_type("STRING")
    (DataType(int64), DataType(string))
    """
    import pyarrow as pa

    return {
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "STRING": pa.string(),
        "BOOLEAN": pa.bool_(),
        "BINARY": pa.binary(),
    }[sql_type]


def arrow_schema(ddl: str) -> pa.Schema:
    """The columns of a table in Arrow.

    >>> arrow_schema("rule STRING, number BIGINT").names
    ['rule', 'number']
    """
    import pyarrow as pa

    columns = (column.split() for column in ddl.split(", "))
    return pa.schema([(name, arrow_type(sql_type)) for name, sql_type in columns])


def selected(plan: Plan) -> list[Column]:
    """The columns of a rule's own table, read from the common one."""
    from pyspark.sql import functions as F

    return [F.col(slot).alias(name) for name, slot in slots_of(columns_of(plan)).items()]

"""`penstock cloud backfill RULES RAW OUT`: the rules of the gateways over raw events of the past, in Spark.

    RAW/gw=<gateway>/*.jsonl[.gz]     {"at": 1763683200000, "stream": "plant", "event": {…}}, a line per event

The engine itself runs in Spark's workers, one per gateway; it reads the files of its gateway by name, line by
line, so the lines stand in the order of arrival, and memory does not grow with history. The result is that of
`penstock replay`: rows with the gateway, the instant and the columns of the SELECT, typed by its plan.

    tables    raw events in, a typed table for each rule out
    shares    which task has the files of which gateways
    worker    the engine over the files of gateways
    row_writer  the columns of rows from what rules emit
    cells     the values of rows as typed columns
    slots     the columns of SELECTs in the one table that workers give back
    handover  the state at a cut, with which a later backfill goes on
"""

from cloud_sync.spark.backfill.rule_tables import FIXED, Cut, backfill, rows
from cloud_sync.spark.backfill.rules import BackfillError, Sources, compiled
from cloud_sync.spark.backfill.slots import TYPES

__all__ = ["FIXED", "TYPES", "BackfillError", "Cut", "Sources", "backfill", "compiled", "rows"]

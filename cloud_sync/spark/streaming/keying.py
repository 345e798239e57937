"""The keys of events: one row for each rule that reads an event,
with the key by which the rule is divided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cloud_sync.names import original
from cloud_sync.spark.backfill.rules import Sources, compiled_once
from cloud_sync.spark.backfill.worker import Reading, runs_of
from cloud_sync.spark.tables import in_batches
from rules.compiled import Compiled
from sinks.formats import lossless_json
from sql import Engine, Plan, plan_rule
from sql.plan.clauses import ItemPlan
from sql.plan.event_keys import keys_of
from sql.record import replace

if TYPE_CHECKING:
    import pyarrow as pa

KEYED = (
    "rule STRING, key STRING, at_ms BIGINT, gateway STRING, path STRING, line BIGINT, "
    "stream STRING, event STRING, reason STRING, clock_ms BIGINT"
)
"""Events with their keys. `path` and `line` give the order of a gateway's events.
`reason`: what stands there is no event. `clock_ms` is set in a row of no rule, one for each file:
the newest arrival in it."""


class Keying:
    """The key of each event for some rules. The engine computes it, so that it is that of the rule itself."""

    def __init__(self, known: Compiled, rules: Sequence[str]) -> None:
        self._engine = Engine(known.catalog.copied())
        self._rules: dict[str, str] = {}
        for rule in rules:
            plan = known.rules[rule].plan
            for stream, keys in keys_of(plan).items():
                name = f"{rule} {stream}"
                self._rules[name] = rule
                self._engine.deploy(name, self._plan(plan, stream, keys), 0)

    def _plan(self, plan: Plan, stream: str, keys: Sequence[Any]) -> Plan:
        options = replace(plan.options, event_time=False)
        whole = plan_rule(f"SELECT * FROM `{stream}`", self._engine.catalog, options)
        items = tuple(ItemPlan(f"k{number:03}", key) for number, key in enumerate(keys))
        return replace(whole, items=items, output_columns=None)

    def keys(self, stream: str, event: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Each rule that reads the stream, with the key of the event. An event without a key,
        because it does not fit its stream, has an empty one: the rule then reports the reason."""
        for emission in self._engine.push(stream, [event], 0):
            found = emission.inserted if emission.kind == "rows" else [None]
            for row in found:
                key = "" if row is None else key_text(row.values())
                yield self._rules[emission.rule], key


def key_text(values: Iterable[Any]) -> str:
    """A key as text, equal for values that the engine groups together.

    >>> key_text([1.0, "a", None]), key_text([1, "a", None]), key_text([True, {"b": 1, "a": -0.0}])
    ('[1,"a",null]', '[1,"a",null]', '[true,{"a":0,"b":1}]')
    """
    return lossless_json.encode([_canonical(value) for value in values]).decode("utf-8", "backslashreplace")


def _canonical(value: object) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _canonical(value[name]) for name in sorted(value)}
    return [_canonical(item) for item in value] if isinstance(value, list | tuple) else value


def run(
    sources: Sources,
    rules: Sequence[str],
    zone: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The events (KEYED) of files with their gateway, path and content."""
    keying = Keying(compiled_once(tuple(sources), zone), rules)
    files = (file for batch in batches for file in batch.to_pylist())
    yield from in_batches((row for file in files for row in rows_of(keying, rules, file)), schema)


def rows_of(keying: Keying, rules: Sequence[str], file: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events (KEYED) of one file."""
    reading, clock_ms, line = Reading(), 0, 0
    place = {"gateway": original(file["gateway"]), "path": file["path"]}
    arrivals = (
        (at_ms, run.stream, event)
        for run in runs_of([file], reading)
        for at_ms, event in zip(run.instants, run.rows, strict=True)
    )
    for line, (at_ms, stream, event) in enumerate(arrivals):
        clock_ms = max(clock_ms, at_ms)
        text = lossless_json.encode(event).decode("utf-8", "surrogatepass")
        arrival = place | {"at_ms": at_ms, "line": line, "stream": stream, "event": text}
        for rule, key in keying.keys(stream, event):
            yield arrival | {"rule": rule, "key": key}
    for reason in reading.bad:
        line += 1
        for rule in rules:
            yield place | {"rule": rule, "key": "", "at_ms": clock_ms, "line": line, "reason": reason}
    yield {"rule": "", "key": "", "clock_ms": clock_ms}

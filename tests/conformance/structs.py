"""An engine whose rules have come from another process, as in the gateway, and read rows of structs wherever
the gateway would decode messages into structs."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from edge.deploy.reading.wire import dumped
from edge.deploy.row_shapes import row_maker, shape_of, struct_columns
from edge.intake.codecs.rows import attributes, row_class
from sql import Catalog, Engine, Plan
from sql.emission import Emissions
from sql.record import replace

NOTHING_SHOWN = SimpleNamespace(
    rule=SimpleNamespace(late=None, error=None),
    options=SimpleNamespace(send_error=False, send_meta_to_sink=False),
)
"""What a rule file says that passes no whole event on."""


class StructEngine(Engine):
    """Takes dicts and makes of them what the rules of their stream read.
    `plans`: those of its rules, as deployed."""

    def __init__(self, catalog: Catalog, *, structs: Mapping[str, frozenset[str]]) -> None:
        super().__init__(catalog)
        self.plans: dict[str, Plan] = {}
        self.structs = structs
        self.makers = {stream: _maker(columns) for stream, columns in structs.items()}

    def deploy(
        self, name: str, plan: Plan, now_ms: int, state: dict[str, Any] | None = None, **_: Any
    ) -> None:
        plan = self.plans[name] = pickle.loads(dumped(plan))
        shape = shape_of(plan, self.structs)
        super().deploy(name, plan, now_ms, state, shape=shape, make_row=row_maker(plan, shape))

    def remove(self, name: str) -> None:
        super().remove(name)
        self.plans.pop(name, None)

    def push(self, stream: str, rows: Sequence[Any], now_ms: int) -> Emissions:
        make = self.makers.get(stream)
        return super().push(stream, rows if make is None else [make(row) for row in rows], now_ms)


def new_engine(catalog: Catalog, *, structs: Mapping[str, frozenset[str]] | None) -> Engine:
    """An engine for the rows these are, dicts for None."""
    return Engine(catalog) if structs is None else StructEngine(catalog, structs=structs)


def structs_of(engine: StructEngine) -> dict[str, frozenset[str]]:
    """The streams whose events the gateway would decode into structs for the rules of this engine."""
    catalog = Catalog()
    catalog.streams = {
        name: replace(stream, options={**stream.options, "TYPE": "mqtt"})
        for name, stream in engine.catalog.streams.items()
        if name not in engine.dispatch.before
    }
    rules: list[Any] = [
        SimpleNamespace(plan=plan, rule=NOTHING_SHOWN.rule, options=NOTHING_SHOWN.options)
        for plan in engine.plans.values()
    ]
    return struct_columns(catalog, rules)


def _maker(columns: frozenset[str]) -> Callable[[dict[str, Any]], Any]:
    names, row = attributes(columns), row_class(columns)
    return lambda event: row(**{attribute: event.get(column) for column, attribute in names.items()})

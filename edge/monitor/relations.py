"""Pages about named windows, tables and partitions: their list, their rows, SELECTs. They change
nothing.

    GET /relations           JSON: each relation with its columns, keys, number of rows and bound counters
    GET /relations/NAME      its rows, one JSON object a line
    GET /query?sql=SELECT …  JSON: {"rows": […], "more": false};
                             &parameters= a JSON array of values for each `?`,
                             or an object of those of `:name`; &only= some of the partitions
                             EXPLAIN SELECT …, EXPLAIN RULE name: a row {"plan": …} for each line of the plan
    GET /partitions/NAME     the live partitions of a context, one JSON object a line; ?only= some of them

`only` is a JSON object with one of ids, keys, hashes, labels, has, nested (`sql.algebra.context.selectors`).

The gateway loop answers a request between two events, so it sees no half-done step. A SELECT is answered
apart from the loop, by a child that is forked there (`edge.monitor.apart`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from edge.monitor.apart import Apart
from sql.errors import DataError, did_you_mean
from sql.plan.declared import AskedDeclaration, Bounds

if TYPE_CHECKING:
    from edge.monitor.observed import Observed
    from sql.algebra.context.selectors import Selector
    from sql.engine.questions.question_parameters import Parameters
    from sql.plan.logical import Plan

ROWS_MAX = 10_000
"""Rows of an answer to a SELECT; `more`: there are further ones."""


class Relations:
    """Answers from the gateway's engine. May be called from any thread; each call may raise TimeoutError."""

    def __init__(self, daemon: Observed) -> None:
        self._daemon = daemon
        self._apart = Apart(daemon)

    def listed(self) -> dict[str, Any]:
        """All relations by name."""
        return self._daemon.ask(self._listed)

    def rows(self, name: str) -> bytes:
        """The rows of one as JSON lines. Raises KeyError where there is no such relation."""
        rows = self._daemon.ask(lambda: self._daemon.engine.relation(name).rows())
        return b"".join(msgspec.json.encode(row, enc_hook=str) + b"\n" for row in rows)

    def answer(self, sql: str, parameters: str = "[]", only: str = "") -> bytes:
        """The answer to a SELECT as JSON. Raises SqlError and DataError for what cannot be answered."""
        # Here and not in the loop, which would wait for the parser.
        from sql.engine.questions import demand  # noqa: F401

        engine, values, selector = self._daemon.engine, _values(parameters), _selector(only)
        words = sql.split(None, 1)
        if len(words) == 2 and words[0].lower() == "explain":
            return _encoded(self._explained(words[1].strip(), values))
        return self._apart.answer(
            lambda: _encoded(engine.query(sql, parameters=values, read_only=True, selector=selector).rows)
        )

    def _explained(self, text: str, parameters: Parameters) -> list[dict[str, Any]]:
        """The plan of `RULE name`, or of a SELECT, line by line."""
        from sql.engine.questions.demand import planned
        from sql.explain.tree import explain

        kind, _, name = text.partition(" ")

        def found() -> Plan:
            if kind.lower() != "rule":
                return planned(text, self._daemon.engine.catalog, parameters)
            running = self._daemon.manager.running
            if name.strip() not in running:
                hint = did_you_mean(name, running)
                raise DataError(f"there is no rule '{name}'{f': {hint}' if hint else ''}")
            return running[name.strip()].rule.plan

        plan = self._daemon.ask(found)
        return [{"plan": line} for line in explain(plan).rstrip().splitlines()]

    def partitions(self, context: str, only: str = "") -> bytes:
        """Live partitions with their properties as JSON lines. Raises KeyError where no rule runs in such a
        context, DataError where `only` cannot be read."""
        selector = _selector(only)
        found = self._daemon.ask(lambda: self._daemon.engine.partitions(context, selector))
        return b"".join(msgspec.json.encode(row, enc_hook=str) + b"\n" for row in found)

    def _listed(self) -> dict[str, Any]:
        counters = self._daemon.manager.tables.counters()
        found = {}
        for name, counts in counters.items():
            view = self._daemon.engine.relation(name)
            table = self._daemon.manager.tables.running[name]
            declared = table.relation.declaration
            bounds = Bounds() if isinstance(declared, AskedDeclaration) else declared.bounds
            found[name] = {
                "kind": view.kind,
                "file": table.path,
                "columns": list(view.columns),
                "keys": list(view.keys),
                "max_rows": bounds.max_rows,
                "ttl_ms": bounds.ttl_ms,
                **counts,
            }
        return found


def _encoded(rows: Sequence[object]) -> bytes:
    answer = {"rows": rows[:ROWS_MAX], "more": len(rows) > ROWS_MAX}
    return msgspec.json.encode(answer, enc_hook=str) + b"\n"


def _values(parameters: str) -> Parameters:
    """The values of parameters. Raises DataError for what is neither a JSON array nor an object."""
    try:
        return msgspec.json.decode(parameters, type=list[Any] | dict[str, Any])
    except msgspec.MsgspecError as error:
        raise DataError(f"parameters are a JSON array or object: {error}") from None


def _selector(only: str) -> Selector | None:
    """The selector of partitions; None: all. Raises DataError for a text that is no selector."""
    if not only:
        return None
    from sql.algebra.context.selectors import selector_of

    try:
        return selector_of(msgspec.json.decode(only))
    except msgspec.MsgspecError as error:
        raise DataError(f"partitions are chosen by a JSON object: {error}") from None

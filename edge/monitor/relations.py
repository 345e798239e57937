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

The gateway loop answers a request between two events, so it sees no half-done step. A SELECT and the list of
partitions are answered apart from the loop, by a child that is forked there (`edge.monitor.apart`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from edge.base.page import Page, text_page
from edge.deploy.tables import bounds_of
from edge.monitor.apart import Apart
from edge.monitor.pages import Pages
from sql.errors import DataError, SqlError, did_you_mean

if TYPE_CHECKING:
    from edge.monitor.observed import Observed
    from sql.algebra.context.selectors import Selector
    from sql.engine.questions.question_parameters import Parameters
    from sql.plan.logical import Plan

ROWS_MAX = 10_000
"""Rows of an answer to a SELECT; `more`: there are further ones."""


class Relations(Pages):
    """Answers from the gateway's engine."""

    listed = ("/relations", "/query")

    def __init__(self, daemon: Observed) -> None:
        self._daemon = daemon
        self._apart = Apart(daemon)

    def knows(self, path: str) -> bool:
        return path in self.listed or path.startswith(("/relations/", "/partitions/"))

    def open(self, path: str, query: Mapping[str, str]) -> Page:
        _, kind, *rest = path.split("/", 2)
        name = unquote(rest[0]) if rest else ""
        try:
            if kind == "query":
                return self._query(query)
            if kind == "partitions":
                return self._partitions(name, query.get("only", ""))
            return self._rows(name) if name else self._list()
        except (SqlError, DataError) as error:
            return text_page(400, str(error))

    def _list(self) -> Page:
        return Page(200, json.dumps(self._daemon.ask(self._listed), indent=1).encode() + b"\n")

    def _rows(self, name: str) -> Page:
        try:
            return _lines(_text(self._daemon.ask(lambda: self._daemon.engine.relation(name).rows())))
        except KeyError:
            return text_page(404, f"there is no table '{name}'; see /relations")

    def _query(self, query: Mapping[str, str]) -> Page:
        if not query.get("sql"):
            how = "/query?sql=SELECT …&parameters=[…]&only={…}, percent-encoded"
            return text_page(400, f"ask one question: {how}")
        values, selector = _values(query.get("parameters") or "[]"), _selector(query.get("only", ""))
        return Page(200, self._answer(query["sql"], values, selector))

    def _partitions(self, context: str, only: str) -> Page:
        selector, engine = _selector(only), self._daemon.engine
        if not self._daemon.ask(lambda: context in engine.contexts):
            return text_page(404, f"no rule runs in a context '{context}'; see contexts in /status")
        return _lines(self._apart.answer(lambda: _text(engine.partitions(context, selector))))

    def _answer(self, sql: str, values: Parameters, selector: Selector | None) -> bytes:
        """The answer to a SELECT as JSON. Raises SqlError and DataError for what cannot be answered."""
        # Here and not in the loop, which would wait for the parser.
        from sql.engine.questions import demand  # noqa: F401

        engine = self._daemon.engine
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

    def _listed(self) -> dict[str, Any]:
        counters = self._daemon.manager.tables.counters()
        found = {}
        for name, counts in counters.items():
            view = self._daemon.engine.relation(name)
            table = self._daemon.manager.tables.running[name]
            bounds = bounds_of(table)
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


def _lines(text: bytes) -> Page:
    return Page(200, text, "application/x-ndjson")


def _text(rows: Iterable[object]) -> bytes:
    """Rows as JSON lines."""
    return b"".join(msgspec.json.encode(row, enc_hook=str) + b"\n" for row in rows)


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

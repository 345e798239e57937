"""`on Stream set variable = …`: later statements of the same event see the new values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sql.algebra.event import Event
from sql.compiler.shared_code import Environment
from sql.emission import Row
from sql.engine.relations.triggered import TriggerCode, Triggered
from sql.plan.logical import Plan, SetPlan
from sql.rows import as_dict


class SetCode(TriggerCode):
    """The functions of the values that are assigned."""

    def __init__(self, plan: Plan, env: Environment) -> None:
        acts = plan.acts
        assert isinstance(acts, SetPlan)
        super().__init__(plan, env, acts.trigger, acts.subqueries)
        self.setters = [(name, self.functions.value(value)) for name, value in acts.assignments]
        self.names = tuple(dict.fromkeys(name for name, _ in acts.assignments))
        """The variables that are assigned, each once."""


class SetStatement(Triggered[SetCode]):
    """Assigns variables, in order: each assignment sees those before it. The row has the values assigned, and
    conditions of output limits, which may set variables in turn, are tested when all of them are."""

    def act(self, rows: Sequence[Any]) -> None:
        shown: list[Row] = []
        try:
            for row in rows:
                event = Event((row, None, None), self.now_ms, 0)
                for name, value in self.code.setters:
                    self.catalog.put(name, _plain(value(event)))
                shown += self.read(self.now_ms)
                for name in self.code.names:
                    self.catalog.tell(name)
        finally:
            self.post(shown)

    def read(self, now_ms: int) -> list[Row]:
        return [{name: self.catalog.variables[name].value for name in self.code.names}]


def _plain(value: object) -> Any:
    """A whole event as a plain object."""
    return (
        value
        if value is None or value.__class__ in (str, int, float, bool, list, dict)
        else dict(as_dict(value))
    )

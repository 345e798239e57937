"""`update istream`: events change, or are dropped, before another statement reads them."""

from __future__ import annotations

from typing import Any

from sql.algebra.event import Event
from sql.codegen.functions import DATA_ERRORS
from sql.compiler.shared_code import Environment, SharedCode
from sql.emission import Emission
from sql.engine.relations.triggered import PostingStatement
from sql.plan.logical import Plan, UpdateStreamPlan


class UpdateStreamCode(SharedCode):
    """The functions of the condition, and of the values that are assigned."""

    def __init__(self, plan: Plan, env: Environment) -> None:
        super().__init__(env, plan.options)
        acts = plan.acts
        assert isinstance(acts, UpdateStreamPlan)
        self.plan = plan
        self.drops = acts.drops
        self.functions = self.function_set(text=plan.text)
        self.passes = None if acts.trigger.filter is None else self.functions.true(acts.trigger.filter)
        self.setters = [(name, self.functions.value(value)) for name, value in acts.assignments]


class UpdateStreamStatement(PostingStatement):
    """Posts each event that it changes as an inserted row, and as it was as a removed one."""

    def __init__(self, code: UpdateStreamCode, env: Environment) -> None:
        super().__init__(env.name, code.plan, env.now_ms)
        self.code = code

    def change(self, row: dict[str, Any], now_ms: int, out: list[Emission]) -> dict[str, Any] | None:
        """The event as it is from now on; None if it is dropped. One that cannot be changed is an error, and
        goes on as it came."""
        self.counts["events_in"] += 1
        self.now_ms = self.code.context.now_ms = now_ms
        try:
            changed = self._changed(Event(row, now_ms, 0))
        except DATA_ERRORS as error:
            self.report(row, self.code.functions.failure(error))
            changed = row
        if changed is not None and changed is not row:
            self.post([changed], [row])
        out += self.take()
        return changed

    def _changed(self, event: Event) -> dict[str, Any] | None:
        code = self.code
        row: dict[str, Any] = event.row
        if code.passes is not None and not code.passes(event):
            return row
        return None if code.drops else {**row, **{name: value(event) for name, value in code.setters}}

"""Doubts about the state of a rule: state without bound, and aggregates that nothing resets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from rules.compiled import CompiledRule
from sql.errors import Problem, Span
from sql.explain.tree import unbounded
from sql.plan.logical import Plan


class Unbounded:
    """State whose size depends on the data alone: `explain` marks it as unbounded, unless the rule sets a
    bound."""

    code: ClassVar[str] = "R207"

    def find(self, rule: CompiledRule, samples: Mapping[str, frozenset[str]]) -> Iterator[Problem]:
        """One doubt for each reason, at the windows of the rule."""
        plan = rule.plan
        if "max_window_events" in rule.options.model_fields_set:
            return
        spans = [window.span for source in plan.sources for window in source.windows]
        span = (
            spans[0].to(spans[-1]) if spans else plan.window.span if plan.window is not None else Span(0, 6)
        )
        for reason in unbounded(plan):
            most = f"; from {plan.options.max_window_events:,} events on (maxWindowEvents) each is an error"
            hint = "add a bound, such as #length(1000) or #time(1 hour), or set the option maxWindowEvents"
            yield Problem(self.code, f"nothing bounds the state: {reason}{most}", span, hint, "warning")


class NeverResets:
    """An aggregate without a window: it takes in every event since the rule began."""

    code: ClassVar[str] = "R208"

    def find(self, rule: CompiledRule, samples: Mapping[str, frozenset[str]]) -> Iterator[Problem]:
        """The first such aggregate of the rule."""
        plan = rule.plan
        if not plan.aggregates or _forgets(plan):
            return
        call = plan.aggregates[0]
        yield Problem(
            self.code,
            f"{call.definition.name}() never resets: "
            "without a window it counts every event since the rule began",
            call.span,
            "add a window, such as GROUP BY TUMBLINGWINDOW(ss, 10), if that is not meant",
            "warning",
        )


def _forgets(plan: Plan) -> bool:
    """True if the plan resets its aggregates, or keeps them on purpose."""
    if (
        plan.window is not None
        or plan.context is not None
        or plan.into_table is not None
        or plan.acts is not None
    ):
        return True
    return any(
        source.keeps
        or source.lot is not None
        or source.pattern is not None
        or source.recognize is not None
        or source.retained_rows is not None
        for source in plan.sources
    )

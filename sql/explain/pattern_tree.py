"""`explain` for patterns: the tree of a running pattern."""

from __future__ import annotations

from collections.abc import Mapping

from sql.explain import words
from sql.explain.tree_node import TreeNode
from sql.plan import pattern_plan as plans
from sql.plan.bound import Bound
from sql.plan.pattern_plan import LengthPlan, PatternPlan, StepPlan

NAMES: dict[type[StepPlan], str] = {
    plans.FollowedByPlan: "one after the other",
    plans.AllOfPlan: "all of",
    plans.AnyOfPlan: "any of",
    plans.AbsentPlan: "not",
    plans.IntervalPlan: "timer",
    plans.AtPlan: "timer",
    plans.SchedulePlan: "timer",
}


def tree(pattern: PatternPlan, reads: Mapping[str, frozenset[str] | None]) -> TreeNode:
    """The nodes of a pattern, and at the filters the streams that they read, with their columns."""

    def node(step: StepPlan) -> TreeNode:
        remark = ""
        if isinstance(step, plans.FilterPlan):
            columns = reads.get(step.stream, frozenset())
            names = "the whole message" if columns is None else ", ".join(sorted(columns)) or "no columns"
            remark = f"stream {step.stream}, reads {names}"
        return TreeNode(label(step, pattern), remark, [node(child) for child in step.children()])

    marks = [
        name
        for name, on in (
            ("suppress overlapping matches", pattern.suppress),
            ("a match discards what shares its events", pattern.discard),
        )
        if on
    ]
    return TreeNode("Pattern", ", ".join(["a row per match", *marks]), [node(pattern.root)])


def label(step: StepPlan, plan: PatternPlan) -> str:
    """One node in words."""
    text = plan.text
    if isinstance(step, plans.FilterPlan):
        tag = "" if step.tag is None else f"{plan.tags[step.tag].name}="
        condition = "" if step.condition is None else f"({words.written(step.condition, text)})"
        return f"{tag}{step.stream}{condition}" + (
            f" consumes at level {step.consume}" if step.consume else ""
        )
    if isinstance(step, plans.EveryPlan):
        if not step.keys:
            return "every"
        until = "" if step.length is None else f", each for {_length(step.length, text)}"
        return f"every key once: {words.several(step.keys, text)}{until}"
    if isinstance(step, plans.RepeatPlan):
        return f"repeat {_bound(step.low, text)} to {_bound(step.high, text)} times"
    if isinstance(step, plans.WithinPlan):
        most = "" if step.maximum is None else f", {words.written(step.maximum, text)} matches"
        return f"within {_length(step.length, text)}{most}"
    if isinstance(step, plans.WhilePlan):
        return f"while {words.written(step.condition, text)}"
    spelt = NAMES[type(step)]
    return f"{spelt} {words.slice_of(text, step.span)}" if spelt == "timer" else spelt


def _bound(bound: Bound | None, text: str) -> str:
    return "any" if bound is None else words.written(bound, text)


def _length(length: LengthPlan, text: str) -> str:
    return words.slice_of(text, length.span)

"""The parts of a tree about relations: how rows of one are found, and what a trigger does with them."""

from __future__ import annotations

from dataclasses import replace

from sql.algebra.table import lookup
from sql.compiler.answer import indexed_column
from sql.explain import words
from sql.explain.tree_node import TreeNode
from sql.plan.bound import Bound, Op
from sql.plan.clauses import SourcePlan
from sql.plan.logical import (
    ActionPlan,
    Assignments,
    BranchPlan,
    ChoicePlan,
    Plan,
    SetPlan,
    SplitPlan,
    SubqueryPlan,
    TriggerPlan,
    UpdateStreamPlan,
)

KINDS = {"window": "named window", "table": "table"}

VERBS = {"delete": "delete from", "update": "update"}


def source(plan: Plan, item: SourcePlan, part: SubqueryPlan | None) -> TreeNode:
    """A relation in FROM, and how rows of it are found; `part`: the subquery that the plan is of."""
    assert item.relation is not None
    if item.relation == "answer":
        return TreeNode(f"answer of {item.alias}", "goes with the event")
    alias = "" if item.alias == item.stream else f" as {item.alias}"
    own, count = plan.sources.index(item), len(plan.sources)
    is_once = isinstance(plan.acts, ChoicePlan) and not plan.acts.trigger
    beside = range(own) if is_once else range(count + (0 if part is None else len(part.outer)))
    column = None if part is None else indexed_column(part)
    found = (
        _found([plan.where, *(join.on for join in plan.joins)], own, beside)
        if column is None
        else f"found by hash({column.column})"
    )
    return TreeNode(f"{KINDS[item.relation]} {item.stream}{alias}", found)


def _found(conditions: list[Bound | None], own: int, beside: range) -> str:
    """The search for rows of a source beside those of others, in words."""
    parts = tuple(condition for condition in conditions if condition is not None)
    whole = Op("and", parts) if len(parts) > 1 else parts[0] if parts else None
    search = lookup.explain(whole, own, [place for place in beside if place != own])
    return "every row" if search == "scan" else f"found by {search}"


def acting(plan: Plan, trigger: TreeNode) -> TreeNode | None:
    """The node of the action of a triggered statement, above its trigger; None for other plans."""
    acts = plan.acts
    if isinstance(acts, TriggerPlan):
        return _triggered(acts, plan.text, trigger)
    if isinstance(acts, SplitPlan):
        branches = [TreeNode(_action(branch, plan.text)) for branch in acts.branches]
        return TreeNode("split", "into all" if acts.all else "into the first", [*branches, trigger])
    if isinstance(acts, SetPlan):
        names = ", ".join(dict.fromkeys(name for name, _ in acts.assignments))
        return TreeNode(f"set {names}", "at once", [trigger])
    if isinstance(acts, UpdateStreamPlan):
        does = "drop" if acts.drops else f"set {_columns(acts.assignments)}"
        node = TreeNode(
            f"update istream {acts.trigger.stream}: {does}", "before all other statements", [trigger]
        )
        return _where(node, acts.trigger.filter, plan.text)
    return None


def _triggered(acts: TriggerPlan, text: str, trigger: TreeNode) -> TreeNode:
    alias = "" if acts.alias == acts.relation else f" as {acts.alias}"
    found = _found([acts.where], 1, range(2))
    only = acts.branches[0] if len(acts.branches) == 1 else None
    if only is not None and only.matched and only.condition is None and len(only.actions) == 1:
        (action,) = only.actions
        if action.kind in VERBS:
            set_of = f" set {_columns(action.assignments)}" if action.kind == "update" else ""
            node = TreeNode(f"{VERBS[action.kind]} {acts.relation}{alias}{set_of}", found, [trigger])
            return _where(node, acts.where, text)
    branches = [TreeNode(_branch(branch, text)) for branch in acts.branches]
    return _where(TreeNode(f"merge {acts.relation}{alias}", found, [*branches, trigger]), acts.where, text)


def _where(node: TreeNode, where: Bound | None, text: str) -> TreeNode:
    return node if where is None else replace(node, label=f"{node.label} where {words.written(where, text)}")


def _branch(branch: BranchPlan, text: str) -> str:
    when = {True: "when matched", False: "when not matched", None: "always"}[branch.matched]
    condition = "" if branch.condition is None else f" and {words.written(branch.condition, text)}"
    return f"{when}{condition}: {' then '.join(_action(action, text) for action in branch.actions)}"


def _action(action: ActionPlan, text: str) -> str:
    into = "" if action.into is None else f" into {action.into}"
    what = f" set {_columns(action.assignments)}" if action.kind == "update" else into
    where = "" if action.where is None else f" where {words.written(action.where, text)}"
    return f"{action.kind}{what}{where}"


def _columns(assignments: Assignments) -> str:
    return ", ".join(name for name, _ in assignments)

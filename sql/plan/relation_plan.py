"""Relations as the engine gets them: the plan that declares one, and its indexes."""

from __future__ import annotations

from sql.plan.declared import (
    IndexDeclaration,
    LookupDeclaration,
    TableDeclaration,
    VariableDeclaration,
    WindowDeclaration,
)
from sql.plan.logical import ChoicePlan, Plan, SetPlan, SplitPlan, TriggerPlan, UpdateStreamPlan
from sql.plan.walk import slots_of
from sql.record import Record


class RelationPlan(Record):
    """A named window or table and its declared indexes, or a variable of a context."""

    plan: Plan
    indexes: tuple[IndexDeclaration, ...] = ()

    @property
    def declaration(self) -> WindowDeclaration | TableDeclaration | LookupDeclaration | VariableDeclaration:
        """The declaration of the relation."""
        acts = self.plan.acts
        declared = WindowDeclaration | TableDeclaration | LookupDeclaration | VariableDeclaration
        assert isinstance(acts, declared)
        return acts


def relations_of(plan: Plan) -> frozenset[str]:
    """The named windows and tables that a statement, with its context, reads or writes."""
    levels = () if plan.context is None else plan.context.levels
    patterns = [*plan.patterns, *(pattern for level in levels for pattern in level.patterns)]
    listened = {window for pattern in patterns for window in pattern.windows}
    return plan.relations | written_by(plan) | {lookup.table for lookup in plan.lookups} | listened


def variables_of(plan: Plan) -> frozenset[str]:
    """The variables that a statement reads or sets, those of its context too."""
    acts = plan.acts
    set_by = {name for name, _ in acts.assignments} if isinstance(acts, SetPlan) else set()
    return frozenset(
        set_by.union(slot.key for slot in slots_of(plan) if slot.kind in ("variable", "arrived"))
    )


def written_by(plan: Plan) -> frozenset[str]:
    """The relations that a statement writes, and the streams that it inserts into."""
    return changed_by(plan) if plan.insert_into is None else changed_by(plan) | {plan.insert_into}


def updated_by(plan: Plan) -> str | None:
    """The stream whose events a statement changes before others read them."""
    return plan.acts.trigger.stream if isinstance(plan.acts, UpdateStreamPlan) else None


def changed_by(plan: Plan) -> frozenset[str]:
    """The relations that a statement changes, and the streams it inserts into or whose events it changes,
    while it acts: the rows of `insert into` follow later."""
    found = set() if plan.into_table is None else {plan.into_table.table}
    acts = plan.acts
    if isinstance(acts, TriggerPlan):
        found |= {acts.relation}
        found |= {action.into for branch in acts.branches for action in branch.actions if action.into}
    elif isinstance(acts, SplitPlan):
        found |= {branch.into for branch in acts.branches if branch.into}
    elif isinstance(acts, UpdateStreamPlan):
        found |= {acts.trigger.stream}
    elif isinstance(acts, ChoicePlan) and acts.delete:
        found |= {plan.sources[1].stream}
    return frozenset(found)

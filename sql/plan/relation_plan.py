"""Relations as the engine gets them: the plan that declares one, and its indexes."""

from __future__ import annotations

from sql.plan.declared import AskedDeclaration, IndexDeclaration, TableDeclaration, WindowDeclaration
from sql.plan.logical import Plan, TriggerPlan
from sql.record import Record


class RelationPlan(Record):
    """A named window or table, and its declared indexes."""

    plan: Plan
    indexes: tuple[IndexDeclaration, ...] = ()

    @property
    def declaration(self) -> WindowDeclaration | TableDeclaration | AskedDeclaration:
        """The declaration of the relation."""
        acts = self.plan.acts
        assert isinstance(acts, WindowDeclaration | TableDeclaration | AskedDeclaration)
        return acts


def relations_of(plan: Plan) -> frozenset[str]:
    """The named windows and tables that a statement reads or writes."""
    return plan.relations | written_by(plan) | {ask.table for ask in plan.asks}


def written_by(plan: Plan) -> frozenset[str]:
    """The relation that a statement writes, or the stream that it inserts into."""
    target = plan.into_table.table if plan.into_table is not None else plan.insert_into
    acts = plan.acts.relation if isinstance(plan.acts, TriggerPlan) else None
    return frozenset(name for name in (target, acts) if name is not None)

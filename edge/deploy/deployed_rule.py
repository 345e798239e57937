"""A deployed rule: its running version, the origin of its state, and the equality of versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rules.compiled import CompiledRule
from sql.rows import Shape

SINCE_SNAPSHOT = "the query is not the one whose state was saved"


@dataclass(slots=True)
class DeployedRule:
    """A deployed rule."""

    rule: CompiledRule
    state: str
    """The origin of its state: new, kept (carried over), restored (from a snapshot) or reset (its
    plan is another)."""
    shape: Shape = "dict"
    """The shape of its rows."""
    differs: tuple[str, ...] = ()
    """The parts of the query that have changed, if the state was reset."""

    @property
    def hash(self) -> str:
        """Equal where gateways run the same rule."""
        return self.rule.hash


def definition(rule: CompiledRule) -> tuple[Any, ...]:
    """The parts that must be equal in two versions of the same rule: query, plan, options, actions and
    checks."""
    return (
        rule.rule.sql,
        rule.plan.fingerprint,
        rule.options,
        rule.rule.actions,
        rule.rule.late,
        rule.rule.error,
        rule.rule.rule.expect,
    )

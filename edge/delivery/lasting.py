"""The streams whose messages have effects that a crash may not undo:
those are acknowledged once the journal has them.

Messages of the others pass through rules that keep nothing, to sinks that have no part in a replay.
When the sinks have the results, nothing is left of the messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from edge.delivery.assigned import AssignedAction
from edge.delivery.inline_action import MEMORY
from rules.compiled import CompiledRule
from sql.catalog.streams import Catalog
from sql.plan.traces import leaves_traces


def lasting_streams(
    rules: Iterable[tuple[CompiledRule, Sequence[AssignedAction]]],
    moves: Iterable[tuple[str, str]],
    known: Iterable[str],
    catalog: Catalog,
) -> frozenset[str]:
    """The lasting ones among the streams that rules read, and those that lead to them.

    rules   with their actions
    moves   pairs of streams: rows of a rule that reads the first enter the second
    known   streams that last for another reason: a table is made of them,
            keys of their messages are remembered
    """
    found = set(known)
    for rule, actions in rules:
        into = rule.plan.insert_into
        if leaves_traces(rule.plan) or into in catalog.relations or any(map(_lasts, actions)):
            found.update(rule.plan.streams)
    moves = list(moves)
    size = -1
    while size != len(found):
        size = len(found)
        found.update(source for source, target in moves if target in found)
    return frozenset(found)


def _lasts(action: AssignedAction) -> bool:
    """True if a replay must make the action's rows again. Those of memory topics enter streams that `moves`
    names."""
    return action.is_replayed and action.delivery.name != MEMORY

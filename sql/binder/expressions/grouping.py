"""GROUP BY: its keys, and the grouping sets of `rollup`, `cube` and `grouping sets`.

    group by k, rollup(a, b)      keys k, a, b; sets (k, a, b), (k, a), (k)

An event counts in one group of each set. A row shows NULL for a key that its set lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, compress, islice, product

from sql import syntax as ast
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.place import Place
from sql.errors import Problems
from sql.plan.bound import Bound, event_read
from sql.plan.clauses import Criterion, Grouping, Keys
from sql.plan.logical import Plan
from sql.record import replace

GROUP_BY = Place("GROUP BY")
SETS_MAX = 256
"""The most grouping sets of a query: an event changes a group of each."""


def _prefixes(units: list[Keys]) -> Iterable[Sequence[Keys]]:
    return (units[:count] for count in range(len(units), -1, -1))


def _subsets(units: list[Keys]) -> Iterable[Sequence[Keys]]:
    chosen = product((True, False), repeat=len(units))
    return (tuple(compress(units, wanted)) for wanted in chosen)


CHOICES: dict[str, Callable[[list[Keys]], Iterable[Sequence[Keys]]]] = {
    "rollup": _prefixes,
    "cube": _subsets,
    "keys": lambda units: [units],
}
"""The parts that each grouping set has, by the word; the set of all parts comes first."""


class GroupBinder:
    """Binds one GROUP BY."""

    def __init__(self, binder: ExpressionBinder) -> None:
        self.binder = binder
        self.problems = binder.problems
        self.keys: list[Bound] = []

    def bind(self, parts: Sequence[ast.Expr]) -> Grouping:
        """The keys of GROUP BY, and the combinations of the grouping sets of its parts."""
        spread = next((part for part in parts if isinstance(part, ast.GroupingSets)), None)
        if spread is None:
            return Grouping(tuple(self.binder.bind(part, GROUP_BY) for part in parts))
        if self.binder.kind.mode != "delta":
            message = "rollup, cube and grouping sets stand in statements with the windows of EPL"
            self.problems.error("B545", message, spread.span, "for example FROM readings#time_batch(10 sec)")
        chosen: list[Keys] = [()]
        for part in parts:
            pairs = product(chosen, self._sets(part))
            chosen = list(islice(dict.fromkeys(_merged(pair) for pair in pairs), SETS_MAX + 1))
        if len(chosen) > SETS_MAX:
            message = f"more than {SETS_MAX} grouping sets, in each of which an event counts"
            self.problems.error("B545", message, spread.span, "name those that you need in grouping sets(…)")
        if not any(chosen):
            message = "no grouping set has a key"
            self.problems.error("B545", message, spread.span, "leave GROUP BY out")
        return Grouping(tuple(self.keys), tuple(chosen))

    def _sets(self, part: ast.Expr) -> list[Keys]:
        """The grouping sets of a part of GROUP BY, or of a part of that."""
        if not isinstance(part, ast.GroupingSets):
            return [(self._place(part),)]
        inner = [self._sets(one) for one in part.parts]
        if part.kind == "grouping sets":
            found = list(chain.from_iterable(inner))
        else:
            units = list(chain.from_iterable(inner))
            found = [_merged(parts) for parts in islice(CHOICES[part.kind](units), SETS_MAX + 1)]
        if len(set(found)) < len(found):
            self.problems.error("B545", f"two sets of {part.kind}(…) have the same keys", part.span)
        return found

    def _place(self, node: ast.Expr) -> int:
        key = self.binder.bind(node, GROUP_BY)
        if key not in self.keys:
            self.keys.append(key)
        return self.keys.index(key)


def _merged(parts: Iterable[Keys]) -> Keys:
    return tuple(sorted(set(chain.from_iterable(parts))))


# --- rows ---------------------------------------------------------------------------------------------------


def with_sets(problems: Problems, plan: Plan, grouping: Grouping) -> Plan:
    """The plan with its grouping sets, whose rows stand in their order."""
    if not grouping.sets:
        return plan
    if not problems.errors:
        _check(problems, plan)
    having, order_by = plan.having, plan.order_by
    return replace(
        plan,
        grouping_sets=grouping.sets,
        items=tuple(replace(item, value=grouping.shown(item.value)) for item in plan.items),
        having=None if having is None else grouping.shown(having),
        order_by=(
            *(replace(by, value=grouping.shown(by.value)) for by in order_by),
            Criterion(grouping.place),
        ),
    )


def _check(problems: Problems, plan: Plan) -> None:
    """Report what a row of a grouping set cannot show."""
    for node in (*(item.value for item in plan.items), plan.having, *(by.value for by in plan.order_by)):
        read = None if node is None else event_read(node, plan.group_by)
        if read is not None:
            message = "a row of a grouping set shows keys and aggregates, and this is neither"
            problems.error("B545", message, read.span, "put it into GROUP BY, or aggregate it")
    for call in plan.aggregates:
        if call.group_by is not None:
            message = "an aggregate beside rollup, cube and grouping sets has no keys of its own"
            problems.error("B545", message, call.span, "compute it in a statement of its own")

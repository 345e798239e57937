"""Checks of clauses that have no effect in a statement that is otherwise right: a problem with
its place, never silence.

An error where only a misunderstanding can be meant, a warning where EPL allows the
text and it changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sql import syntax as ast
from sql.binder.annotations import check_annotations
from sql.errors import Problems
from sql.plan.bound import event_read
from sql.plan.logical import Plan


def check_effects(problems: Problems, select: ast.Select, plan: Plan, *, is_epl: bool) -> None:
    """Report what has no effect in a bound statement."""
    _check_self_insert(problems, select)
    _check_unidirectional(problems, select.sources)
    check_annotations(problems, select, plan)
    _check_first_rows(problems, plan)
    if not _one_by_one(plan):
        return
    if select.selector == "rstream" and not plan.insert_into:
        problems.warn(
            "B705",
            "nothing is kept without a window, so nothing ever leaves: rstream selects no row",
            select.span,
            "add a window in FROM, for example E#time(10 sec)",
        )
    clauses: list[tuple[str, ast.Node | None]] = [
        ("ORDER BY", select.order_by[0] if select.order_by else None),
        (
            "LIMIT",
            None if isinstance(select.limit, ast.Constant) and select.limit.value == 0 else select.limit,
        ),
        ("DISTINCT", select if select.distinct else None),
    ]
    for name, node in clauses:
        if node is not None:
            # eKuiper accepts ORDER BY and LIMIT here and ignores them; DISTINCT it does not have at all.
            refused = name == "DISTINCT" and not is_epl
            report = problems.error if refused else problems.warn
            message = f"{name} has no effect: without a window each event gives its own row"
            hint = "add a window, for example GROUP BY TUMBLINGWINDOW(ss, 10)"
            report("B607" if refused else "B704", message, node.span, hint)


def _check_first_rows(problems: Problems, plan: Plan) -> None:
    """A column of many rows that stands beside an aggregate shows one of them."""
    if plan.window is None or not plan.aggregates or plan.judges_windows:
        return
    keys = (*plan.group_by, *plan.window.partition_by)
    for item in plan.items:
        read = event_read(item.value, keys)
        if read is not None:
            message = "beside an aggregate this is of the first row of its group"
            hint = "last_value(…, true) takes the newest; as a column of GROUP BY each value has its own row"
            problems.warn("B719", message, read.span, hint)


def _one_by_one(plan: Plan) -> bool:
    """True if each result holds one row at most."""
    return (
        plan.mode == "delta"
        and plan.output is None
        and not plan.joins
        and not plan.spreads
        and not plan.grouping_sets
        and not any(source.keeps or source.pattern for source in plan.sources)
    )


def _check_self_insert(problems: Problems, select: ast.Select) -> None:
    """A circle over several rules is found where all are known; see `edge.deploy.circles`."""
    target = select.insert_into
    if target is not None and any(source.name == target.stream for source in select.sources):
        message = f"the rule inserts into '{target.stream}', which it reads: each row is its next event"
        hint = "insert into another stream, or filter so that the circle ends"
        problems.warn("B707", message, target.span, hint)


def _check_unidirectional(problems: Problems, sources: Sequence[ast.Source]) -> None:
    if len(sources) == 1 and isinstance(sources[0], ast.StreamSource) and sources[0].unidirectional:
        problems.error("B608", "unidirectional has no effect without a join", sources[0].span)

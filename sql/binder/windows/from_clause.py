"""Windows of FROM: one by one, and how they may stand together."""

from __future__ import annotations

from sql import syntax as ast
from sql.algebra.windows.catalog import WINDOWS
from sql.binder.catalog_names import place_of_window
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.windows.lengths import NO_SUBQUERY
from sql.binder.windows.window_arguments import bind_arguments
from sql.errors import did_you_mean
from sql.plan.clauses import WindowPlan


def bind_windows(binder: ExpressionBinder, source: ast.StreamSource) -> tuple[WindowPlan, ...]:
    """The windows of one source, checked one by one and for how they may stand together."""
    binder = ExpressionBinder(binder.scope, NO_SUBQUERY)
    plans = []
    known = True
    for call in source.windows:
        spec = WINDOWS.get(call.name)
        if spec is None:
            hint = place_of_window(call.name) or did_you_mean(call.name, WINDOWS)
            binder.problems.error("B501", f"unknown window '{call.name}'", call.span, hint)
            known = False
            continue
        if call.namespace not in (None, spec.namespace):
            message = f"window '{call.name}' is in namespace '{spec.namespace}', not '{call.namespace}'"
            binder.problems.error("B502", message, call.span, f"write #{call.name}")
        plans.append(WindowPlan(call.name, bind_arguments(binder, spec, call), call.span))
    if known:
        _check_together(binder, source, plans)
    return tuple(plans)


def _check_together(binder: ExpressionBinder, source: ast.StreamSource, plans: list[WindowPlan]) -> None:
    roles = [(WINDOWS[plan.name].role, plan) for plan in plans]
    batches = [plan for role, plan in roles if role == "batch"]
    error = binder.problems.error
    if len(batches) > 1:
        message = f"two batch windows, '{batches[0].name}' and '{batches[1].name}', cannot be combined"
        error("B510", message, batches[1].span, "keep one of them")
    groups = [index for index, (role, _) in enumerate(roles) if role == "group"]
    merges = [index for index, (role, _) in enumerate(roles) if role == "merge"]
    for index in groups[1:]:
        error("B511", "a stream takes one groupwin", plans[index].span, "give groupwin all keys at once")
    if groups and groups[0] != 0:
        first = f"write #groupwin(…)#{plans[0].name}"
        error("B512", "groupwin stands first, before the windows it groups", plans[groups[0]].span, first)
    if groups and len(plans) == len(groups) + len(merges):
        error(
            "B513", "groupwin needs a window to group", plans[0].span, "for example E#groupwin(k)#length(5)"
        )
    for index in merges:
        if not groups:
            hint = "write #groupwin(…) with the same keys before the windows"
            error("B514", "merge ends a groupwin, and there is none", plans[index].span, hint)
        elif plans[index].arguments != plans[0].arguments:
            error("B514", "merge takes the same keys as its groupwin", plans[index].span)
        elif sum(1 for role, _ in roles[:index] if role in ("retain", "batch")) > 1:
            error("B514", "merge allows at most one data window in its groupwin", plans[index].span)
    derived = next((index for index, (role, _) in enumerate(roles) if role == "derived"), None)
    if derived is not None:
        for role, plan in roles[derived + 1 :]:
            if role != "merge":
                message = f"'{plan.name}' cannot follow the derived-value window '{plans[derived].name}'"
                error("B515", message, plan.span, "insert into a stream, and give that the window")
    if source.retain and sum(1 for role, _ in roles if role in ("retain", "batch")) < 2:
        error("B601", f"retain-{source.retain} has no effect on fewer than two windows", source.span)

"""Windows of GROUP BY, with FILTER and OVER."""

from __future__ import annotations

from typing import Any

from sql import syntax as ast
from sql.algebra.sample.windows.group_entry import COUNTS, GROUP_ENTRIES, LENGTHS, GroupWindowEntry
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.place import Place
from sql.binder.windows.lengths import PARAMETER
from sql.calendar.period import LENGTH_MS_MAX
from sql.errors import Problems, did_you_mean
from sql.plan.bound import Const
from sql.plan.clauses import EACH_EVENT, GroupWindowPlan
from sql.types import literal

UNITS = {"dd": 86_400_000, "hh": 3_600_000, "mi": 60_000, "ss": 1000, "ms": 1}
"""eKuiper's time units."""

MEANT = {
    word: unit
    for unit, words in {
        "dd": "d day days",
        "hh": "h hour hours",
        "mi": "m min minute minutes",
        "ss": "s sec second seconds",
        "ms": "msec millisecond milliseconds",
    }.items()
    for word in words.split()
}
"""Common names of the units that eKuiper does not accept, each with its unit."""


def bind_group_window(binder: ExpressionBinder, window: ast.GroupWindow) -> GroupWindowPlan:
    """An eKuiper window with its FILTER and OVER."""
    problems, entry = binder.problems, GROUP_ENTRIES[window.name]
    if not entry.least <= len(window.args) <= len(entry.names):
        message = f"{entry.signature} cannot take {len(window.args)} parameters"
        problems.error("B520", message, window.span, f"for example {entry.example}")
        return EACH_EVENT
    over = window.over or ast.Over()
    if over.when is not None and not entry.is_triggered:
        message = f"OVER(WHEN …) has no effect on {entry.label}; it triggers sliding windows"
        hint = "use FILTER(WHERE …) to choose what enters the window"
        problems.error("B602", message, over.when.span, hint)
    wrong_before = len(problems.errors)
    written = GroupWindowPlan(
        window.name,
        **_group_arguments(binder, entry, window.args),
        filter=binder.condition(window.filter, Place("FILTER")),
        when=binder.condition(over.when, Place("WHEN")),
        partition_by=tuple(binder.bind(part, Place("PARTITION BY")) for part in over.partition_by),
        span=window.span,
    )
    plan = entry.complete(written)
    if len(problems.errors) == wrong_before:
        _report(problems, entry, plan, window)
    return plan


def _report(
    problems: Problems, entry: GroupWindowEntry, plan: GroupWindowPlan, window: ast.GroupWindow
) -> None:
    """The window's own checks of its parameters."""
    for finding in entry.check(plan):
        report = problems.warn if finding.is_warning else problems.error
        span = window.args[entry.names.index(finding.parameter)].span
        report(finding.code, finding.text, span, finding.hint)


def _group_arguments(
    binder: ExpressionBinder, entry: GroupWindowEntry, args: tuple[ast.Expr, ...]
) -> dict[str, Any]:
    """The arguments as fields of the plan."""
    values = args
    scale = 1
    if entry.has_unit:
        unit_ms, values = _unit(binder, entry.label, args[0]), args[1:]
        if unit_ms is None:
            return {}
        scale = unit_ms
    out: dict[str, Any] = {}
    for parameter, node in zip(entry.parameters, values, strict=False):
        what = f"the {parameter.name} of {entry.label}"
        if parameter.field in LENGTHS:
            out[parameter.field] = _length(binder, node, scale, what, parameter.least, entry.example)
        elif parameter.field in COUNTS:
            out[parameter.field] = _positive(binder, node, what, parameter.least, entry.example)
        else:
            out[parameter.field] = binder.condition(node, Place("a window's conditions"))
    return out


def _unit(binder: ExpressionBinder, label: str, node: ast.Expr) -> int | None:
    """The unit of time that stands first, in ms; None where none does."""
    word = node.name.lower() if isinstance(node, ast.Column) and node.table is None else None
    if word in UNITS:
        return UNITS[word]
    units = ", ".join(name.upper() for name in UNITS)
    binder.problems.error(
        "B522", f"{label} begins with a time unit: {units}", node.span, _unit_hint(word, label)
    )
    return None


def _unit_hint(word: str | None, label: str) -> str | None:
    if word is None:
        return f"the unit stands first: {label}(ss, 10)"
    return f"write {MEANT[word].upper()}" if word in MEANT else did_you_mean(word, UNITS)


def _length(binder: ExpressionBinder, node: ast.Expr, scale: int, what: str, least: int, example: str) -> int:
    """So many of a unit of `scale` ms, in ms."""
    length_ms = scale * _positive(binder, node, what, least, example)
    if length_ms <= LENGTH_MS_MAX:
        return length_ms
    binder.problems.error("B504", f"{what} is at most a hundred years", node.span)
    return scale


def _positive(binder: ExpressionBinder, node: ast.Expr, what: str, least: int, example: str) -> int:
    bound = binder.bind(node, PARAMETER)
    if isinstance(bound, Const) and bound.value.__class__ is int and bound.value >= least:
        return bound.value
    found = f", not {literal(bound.value)}" if isinstance(bound, Const) else ", known before the rule runs"
    message = f"{what} is a whole number of at least {least}{found}"
    binder.problems.error("B504", message, node.span, f"for example {example}")
    return max(least, 1)

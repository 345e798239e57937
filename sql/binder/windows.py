"""Binding windows: EPL windows of FROM, eKuiper windows of GROUP BY, the window of a stream query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql import syntax as ast
from sql.algebra.windows import catalog
from sql.algebra.windows.catalog import WindowParameter, WindowSpec
from sql.binder.expressions import ExpressionBinder, Place
from sql.calendar.period import LENGTH_MS_MAX, Period
from sql.errors import Span, did_you_mean
from sql.plan.bound import Bound, Const, Read, Slot
from sql.plan.logical import Criterion, GroupWindowPlan, LotPlan, PeriodArgument, PredicatePlan, WindowPlan
from sql.types import Type

PARAMETER = Place("a window parameter", aliases=False, analytics=False)

BUILTINS = {
    "current_count": Type.INTEGER,
    "expired_count": Type.INTEGER,
    "oldest_timestamp": Type.INTEGER,
    "newest_timestamp": Type.INTEGER,
    "oldest_event": Type.OBJECT,
    "newest_event": Type.OBJECT,
    "view_reference": Type.ANY,
}
"""Built-in properties of expression windows (epl.md 2.4)."""

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
"""What people write for them."""

FLAGS = ("FORCE_UPDATE", "START_EAGER")


# --- EPL windows --------------------------------------------------------------------------------------------


def bind_windows(binder: ExpressionBinder, source: ast.StreamSource) -> tuple[WindowPlan, ...]:
    """The windows of one source, checked one by one and for how they may stand together."""
    plans = []
    for call in source.windows:
        spec = catalog.lookup(call.name)
        if spec is None:
            names = [item.name for item in catalog.all_windows()]
            binder.problems.error(
                "B501", f"unknown window '{call.name}'", call.span, did_you_mean(call.name, names)
            )
            continue
        if call.namespace not in (None, spec.namespace):
            binder.problems.error(
                "B502",
                f"window '{call.name}' is in namespace '{spec.namespace}', not '{call.namespace}'",
                call.span,
            )
        plans.append(WindowPlan(call.name, _arguments(binder, spec, call), call.span))
    _check_together(binder, source, plans)
    return tuple(plans)


def _arguments(binder: ExpressionBinder, spec: WindowSpec, call: ast.WindowCall) -> dict[str, Any]:
    """The arguments by parameter name, bound by kind; a list kind takes what the kinds after it leave."""
    remaining = list(call.args)
    required = sum(not parameter.optional for parameter in spec.parameters)
    takes_many = any(parameter.kind in ("keys", "criteria", "extras") for parameter in spec.parameters)
    if len(remaining) < required or (not takes_many and len(remaining) > len(spec.parameters)):
        binder.problems.error(
            "B503",
            f"{spec.signature} cannot take {len(remaining)} parameters",
            call.span,
            f"for example {spec.example}",
        )
        return {}
    out: dict[str, Any] = {}
    for index, parameter in enumerate(spec.parameters):
        after = spec.parameters[index + 1 :]
        taken = _take(remaining, parameter, after)
        out[parameter.name] = _BINDERS[parameter.kind](binder, spec, taken, call.span)
    if remaining:
        binder.problems.error("B503", f"{spec.signature}: unexpected parameter", remaining[0].span)
    return out


def _take(
    remaining: list[ast.Expr], parameter: WindowParameter, after: tuple[WindowParameter, ...]
) -> list[ast.Expr]:
    if parameter.kind == "keys" and after:
        # rank(key, …, size, criteria …): a constant splits the keys from the criteria.
        at = next((i for i, arg in enumerate(remaining) if isinstance(arg, ast.Constant)), len(remaining))
        taken, remaining[:] = remaining[:at], remaining[at:]
        return taken
    if parameter.kind in ("keys", "criteria", "extras"):
        taken, remaining[:] = list(remaining), []
        return taken
    if not remaining:
        return []
    is_text = isinstance(remaining[0], ast.Constant) and isinstance(remaining[0].value, str)
    if parameter.optional and (parameter.kind == "flags") != is_text:
        return []
    return [remaining.pop(0)]


def _size(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> Bound:
    if not args:
        binder.problems.error("B503", f"{spec.signature} needs a size", at, f"for example {spec.example}")
        return Const(1)
    bound = binder.bind(args[0], PARAMETER)
    no_reads(binder, bound, args[0], "a size")
    if isinstance(bound, Const) and (bound.value.__class__ is not int or bound.value < 1):
        binder.problems.error(
            "B504",
            f"the size of {spec.name} is a whole number of at least 1, not {bound.value!r}",
            args[0].span,
        )
    elif not Type.INTEGER.accepts(bound.type):
        binder.problems.error(
            "B504", f"the size of {spec.name} is a whole number, not {bound.type.value}", args[0].span
        )
    return bound


def no_reads(binder: ExpressionBinder, bound: Bound, node: ast.Expr, what: str) -> None:
    """Report a parameter that would have to be known before an event arrives."""
    if any(isinstance(part, Read) for part in bound.walk()):
        binder.problems.error(
            "B505", f"{what} is fixed when the statement starts and cannot read an event's columns", node.span
        )


def _period_of(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> PeriodArgument:
    return bind_period(binder, args[0], f"the period of {spec.name}")


def bind_period(binder: ExpressionBinder, node: ast.Expr, what: str) -> PeriodArgument:
    """A length of time: words, or a number of seconds. Constant ones below 1 ms are errors here."""
    if isinstance(node, ast.Unary) and isinstance(node.operand, ast.Period):
        binder.problems.error("B506", f"{what}: a time period has no sign", node.span)
        node = node.operand
    if isinstance(node, ast.Period):
        parts = tuple((binder.bind(part.amount, PARAMETER), part.unit) for part in node.parts)
    else:
        parts = ((binder.bind(node, PARAMETER), "second"),)
    for bound, _ in parts:
        no_reads(binder, bound, node, what)
        binder.expect(bound, Type.NUMBER, f"{what} is a length of time", node.span)
    if all(isinstance(bound, Const) and bound.value.__class__ in (int, float) for bound, _ in parts):
        try:
            Period.of({unit: bound.value for bound, unit in parts})  # type: ignore[attr-defined]
        except ValueError as error:
            binder.problems.error("B506", f"{what}: {error}", node.span)
    return PeriodArgument(parts, node.span)


def _value(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> Bound:
    if not args:
        return Const(None)
    bound = binder.bind(args[0], PARAMETER)
    binder.expect(bound, Type.NUMBER, f"{spec.name} takes a number per event", args[0].span)
    return bound


def _keys(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> tuple[Bound, ...]:
    bounds = tuple(binder.bind(arg, PARAMETER) for arg in args)
    if not bounds:
        binder.problems.error("B503", f"{spec.signature} needs at least one key", at, spec.example)
    for bound, arg in zip(bounds, args, strict=True):
        _not_constant(binder, spec, bound, arg)
    return bounds


def _not_constant(binder: ExpressionBinder, spec: WindowSpec, bound: Bound, arg: ast.Expr) -> None:
    if isinstance(bound, Const | Slot):
        binder.problems.error(
            "B507", f"{spec.name} by a constant keeps nothing apart", arg.span, spec.example
        )


def _criteria(
    binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span
) -> tuple[Criterion, ...]:
    out = []
    for arg in args:
        order = arg if isinstance(arg, ast.Ordering) else ast.Ordering(arg, span=arg.span)
        bound = binder.bind(order.operand, PARAMETER)
        _not_constant(binder, spec, bound, arg)
        out.append(Criterion(bound, order.descending, order.nulls_first))
    if not out:
        binder.problems.error("B503", f"{spec.signature} needs sort criteria", at, spec.example)
    return tuple(out)


def _predicate(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> PredicatePlan:
    outer, binder.aggregates = binder.aggregates, []
    place = Place(
        f"the predicate of {spec.name}", aggregates=True, analytics=False, aliases=False, builtins=BUILTINS
    )
    test = binder.condition(args[0], place)
    found, binder.aggregates = binder.aggregates, outer
    return PredicatePlan(test or Const(None), tuple(found))


def _include(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> Bound | None:
    if not args:
        return None
    bound = binder.bind(args[0], PARAMETER)
    binder.expect(bound, Type.BOOLEAN, "include_triggering_event is true or false", args[0].span)
    return bound


def _reference(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> Bound | None:
    if not args:
        return None
    bound = binder.bind(args[0], PARAMETER)
    binder.expect(bound, Type.INTEGER, "a reference point is an instant in ms", args[0].span)
    return bound


def _flags(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> frozenset[str]:
    if not args:
        return frozenset()
    text = args[0].value if isinstance(args[0], ast.Constant) else None
    words = [word.strip().upper() for word in str(text).split(",")]
    for word in words:
        if word not in FLAGS:
            binder.problems.error(
                "B508",
                f"unknown flow control keyword '{word}'; there are {' and '.join(FLAGS)}",
                args[0].span,
                did_you_mean(word, FLAGS),
            )
    return frozenset(words)


def _extras(
    binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span
) -> tuple[tuple[str | None, Bound], ...]:
    text = binder.text
    out: list[tuple[str | None, Bound]] = []
    for arg in args:
        if isinstance(arg, ast.Star):
            out.append((None, binder.scope.read_all(0, arg.span)))
        else:
            out.append((text[arg.span.start : arg.span.end], binder.bind(arg, PARAMETER)))
    return tuple(out)


_BINDERS: dict[str, Callable[[ExpressionBinder, WindowSpec, list[ast.Expr], Span], Any]] = {
    "size": _size,
    "period": _period_of,
    "value": _value,
    "keys": _keys,
    "criteria": _criteria,
    "predicate": _predicate,
    "include": _include,
    "reference": _reference,
    "flags": _flags,
    "extras": _extras,
}


def _check_together(binder: ExpressionBinder, source: ast.StreamSource, plans: list[WindowPlan]) -> None:
    roles = [(catalog.lookup(plan.name), plan) for plan in plans]
    batches = [plan for spec, plan in roles if spec and spec.role == "batch"]
    error = binder.problems.error
    if len(batches) > 1:
        error(
            "B510",
            f"two batch windows, '{batches[0].name}' and '{batches[1].name}', cannot be combined",
            batches[1].span,
            "keep one of them",
        )
    groups = [index for index, (spec, _) in enumerate(roles) if spec and spec.role == "group"]
    merges = [index for index, (spec, _) in enumerate(roles) if spec and spec.role == "merge"]
    for index in groups[1:]:
        error("B511", "a stream takes one groupwin", plans[index].span, "give groupwin all keys at once")
    if groups and groups[0] != 0:
        error("B512", "groupwin stands first, before the windows it groups", plans[groups[0]].span)
    if groups and len(plans) == len(groups):
        error(
            "B513", "groupwin needs a window to group", plans[0].span, "for example E#groupwin(k)#length(5)"
        )
    for index in merges:
        if not groups:
            error("B514", "merge ends a groupwin, and there is none", plans[index].span)
        elif plans[index].arguments != plans[0].arguments:
            error("B514", "merge takes the same keys as its groupwin", plans[index].span)
        elif sum(1 for spec, _ in roles[:index] if spec and spec.role in ("retain", "batch")) > 1:
            error("B514", "merge allows at most one data window in its groupwin", plans[index].span)
    derived = next((index for index, (spec, _) in enumerate(roles) if spec and spec.role == "derived"), None)
    if derived is not None:
        for spec, plan in roles[derived + 1 :]:
            if spec and spec.role != "merge":
                error(
                    "B515",
                    f"'{plan.name}' cannot follow the derived-value window '{plans[derived].name}'",
                    plan.span,
                )
    if source.retain and sum(1 for spec, _ in roles if spec and spec.role in ("retain", "batch")) < 2:
        error("B601", f"retain-{source.retain} has no effect on fewer than two windows", source.span)


# --- eKuiper windows ----------------------------------------------------------------------------------------

_SHAPES: dict[str, tuple[tuple[str, ...], int]] = {
    "tumbling": (("unit", "length"), 2),
    "hopping": (("unit", "length", "hop"), 3),
    "sliding": (("unit", "length", "delay"), 2),
    "session": (("unit", "max", "timeout"), 3),
    "count": (("size", "interval"), 1),
    "state": (("begin", "emit"), 1),
}


def bind_group_window(binder: ExpressionBinder, window: ast.GroupWindow) -> GroupWindowPlan:
    """An eKuiper window with its FILTER and OVER."""
    problems, label = binder.problems, f"{window.name.upper()}WINDOW"
    names, least = _SHAPES[window.name]
    if not least <= len(window.args) <= len(names):
        problems.error("B520", f"{label} takes {', '.join(names)}", window.span)
        return GroupWindowPlan("count", size=1, interval=1)
    over = window.over or ast.Over()
    before = Place("a window's conditions")
    if over.when is not None and window.name != "sliding":
        problems.error(
            "B602",
            f"OVER(WHEN …) has no effect on {label}; it triggers sliding windows",
            over.when.span,
            "use FILTER(WHERE …) to choose what enters the window",
        )
    fields: dict[str, Any] = {
        "filter": binder.condition(window.filter, Place("FILTER")),
        "when": binder.condition(over.when, Place("WHEN")),
        "partition_by": tuple(binder.bind(part, Place("PARTITION BY")) for part in over.partition_by),
        "span": window.span,
    }
    if window.name == "state":
        conditions = [binder.condition(arg, before) for arg in window.args]
        return GroupWindowPlan(
            "state", begin=conditions[0], emit=conditions[1] if len(conditions) > 1 else None, **fields
        )
    return GroupWindowPlan(window.name, **_numbers(binder, window, label), **fields)  # type: ignore[arg-type]


def _unit_hint(word: str | None, label: str) -> str | None:
    if word is None:
        return f"the unit stands first: {label}(ss, 10)"
    return f"write {MEANT[word].upper()}" if word in MEANT else did_you_mean(word, UNITS)


def _numbers(binder: ExpressionBinder, window: ast.GroupWindow, label: str) -> dict[str, int]:
    error = binder.problems.error
    if window.name == "count":
        size = _positive(binder, window.args[0], f"the size of {label}")
        interval = (
            _positive(binder, window.args[1], f"the interval of {label}") if len(window.args) > 1 else size
        )
        if interval > size:
            error(
                "B521",
                f"the interval {interval} of {label} is larger than its size {size}",
                window.args[1].span,
            )
        return {"size": size, "interval": interval}
    unit = window.args[0]
    word = unit.name.lower() if isinstance(unit, ast.Column) and unit.table is None else None
    if word not in UNITS:
        error(
            "B522",
            f"{label} begins with a time unit: {', '.join(name.upper() for name in UNITS)}",
            unit.span,
            _unit_hint(word, label),
        )
        return {"length_ms": 1, "hop_ms": 1, "timeout_ms": 1}
    scale = UNITS[word]
    looks_ahead = window.name == "sliding" and len(window.args) == 3
    length = _length(binder, window.args[1], scale, f"the length of {label}", 0 if looks_ahead else 1)
    if window.name == "tumbling":
        return {"length_ms": length}
    if window.name == "sliding":
        delay = (
            0 if len(window.args) < 3 else _length(binder, window.args[2], scale, f"the delay of {label}", 0)
        )
        return {"length_ms": length, "delay_ms": delay}
    what = "hop" if window.name == "hopping" else "timeout"
    last = _length(binder, window.args[2], scale, f"the {what} of {label}")
    if window.name == "hopping":
        if last > length:
            binder.problems.warn(
                "B701",
                "the hop is longer than the window: events between windows are in none",
                window.args[2].span,
            )
        return {"length_ms": length, "hop_ms": last}
    if last > length:
        binder.problems.warn(
            "B702",
            "the timeout is longer than the maximum duration and never closes a session",
            window.args[2].span,
            "the maximum stands before the timeout",
        )
    return {"length_ms": length, "timeout_ms": last}


def _length(binder: ExpressionBinder, node: ast.Expr, scale: int, what: str, least: int = 1) -> int:
    """So many of a unit of `scale` ms, in ms."""
    length_ms = scale * _positive(binder, node, what, least)
    if length_ms <= LENGTH_MS_MAX:
        return length_ms
    binder.problems.error("B504", f"{what} is at most a hundred years", node.span)
    return scale


def _positive(binder: ExpressionBinder, node: ast.Expr, what: str, least: int = 1) -> int:
    bound = binder.bind(node, PARAMETER)
    if isinstance(bound, Const) and bound.value.__class__ is int and bound.value >= least:
        return bound.value
    shown = f", not {bound.value!r}" if isinstance(bound, Const) else ""
    binder.problems.error("B504", f"{what} is a whole number of at least {least}{shown}", node.span)
    return max(least, 1)


# --- stream queries -----------------------------------------------------------------------------------------


def bind_lot(binder: ExpressionBinder, source: ast.LotSource) -> LotPlan:
    """The window of a stream query."""
    within = None if source.within is None else bind_period(binder, source.within, "'within'")
    every_period = every_count = None
    if source.every is not None and source.within is not None:
        every_period = bind_period(binder, source.every, "'every'")
    elif source.every is not None:
        every_count = _count(binder, source.every, "'every'")
    if source.retain_all and (within or every_period or every_count or source.partition_by):
        binder.problems.error(
            "B530", "'retain all' is neither partitioned nor batched nor limited in time", source.span
        )
    return LotPlan(
        tuple(binder.bind(part, PARAMETER) for part in source.partition_by),
        within,
        every_period,
        every_count,
        None if source.retain is None else _count(binder, source.retain, "'retain'"),
        source.retain_all,
        tuple(binder.bind(part, PARAMETER) for part in source.unique),
    )


def _count(binder: ExpressionBinder, node: ast.Expr, what: str) -> Bound:
    bound = binder.bind(node, PARAMETER)
    no_reads(binder, bound, node, what)
    if isinstance(bound, Const) and (bound.value.__class__ is not int or bound.value < 1):
        binder.problems.error(
            "B504", f"{what} is a whole number of at least 1, not {bound.value!r}", node.span
        )
    return bound

"""The parameters of windows in FROM, bound by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sql import syntax as ast
from sql.algebra.windows.catalog import WindowParameter, WindowSpec
from sql.binder.constants import at_start
from sql.binder.expressions.expression_binder import ExpressionBinder
from sql.binder.place import Place
from sql.binder.scope import UNKNOWN
from sql.binder.windows.lengths import PARAMETER, bind_period, check_count, no_reads
from sql.errors import Span, did_you_mean
from sql.plan.bound import Bound, Const, Slot
from sql.plan.clauses import Criterion, PeriodArgument, PredicatePlan
from sql.types import Type

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

FLAGS = ("FORCE_UPDATE", "START_EAGER")


def bind_arguments(binder: ExpressionBinder, spec: WindowSpec, call: ast.WindowCall) -> dict[str, Any]:
    """The arguments by parameter name, bound by kind; a list kind takes what the kinds after it leave."""
    remaining = list(call.args)
    required = sum(not parameter.optional for parameter in spec.parameters)
    takes_many = any(parameter.kind in ("keys", "criteria", "extras") for parameter in spec.parameters)
    if len(remaining) < required or (not takes_many and len(remaining) > len(spec.parameters)):
        message = f"{spec.signature} cannot take {len(remaining)} parameters"
        binder.problems.error("B503", message, call.span, f"for example {spec.example}")
        return {}
    out: dict[str, Any] = {}
    for index, parameter in enumerate(spec.parameters):
        after = spec.parameters[index + 1 :]
        taken = _take(binder, remaining, parameter, after)
        out[parameter.name] = _BINDERS[parameter.kind](binder, spec, taken, call.span)
    if remaining:
        message = f"{spec.signature}: unexpected parameter"
        binder.problems.error("B503", message, remaining[0].span, f"for example {spec.example}")
    return out


def _take(
    binder: ExpressionBinder,
    remaining: list[ast.Expr],
    parameter: WindowParameter,
    after: tuple[WindowParameter, ...],
) -> list[ast.Expr]:
    if parameter.kind == "keys" and after:
        # rank(key, …, size, criteria …): the size, which reads no event, splits the keys from the criteria.
        at = next((i for i, arg in enumerate(remaining) if _is_fixed(binder, arg)), len(remaining))
        taken, remaining[:] = remaining[:at], remaining[at:]
        return taken
    if parameter.kind in ("keys", "criteria", "extras"):
        taken, remaining[:] = list(remaining), []
        return taken
    if not remaining:
        return []
    first = remaining[0]
    is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
    is_text |= isinstance(first, ast.Column) and first.name.upper() in FLAGS
    if parameter.optional and (parameter.kind == "flags") != is_text:
        return []
    return [remaining.pop(0)]


def _is_fixed(binder: ExpressionBinder, arg: ast.Expr) -> bool:
    """True if a parameter reads no event. What is wrong with it is reported when it is bound for good."""
    found = binder.problems.found
    before = len(found)
    bound = binder.bind(arg, PARAMETER)
    is_fixed = len(found) == before and not bound.reads_events()
    del found[before:]
    return is_fixed


def _fixed(binder: ExpressionBinder, arg: ast.Expr, wanted: Type, what: str, kind: str) -> Bound:
    """A parameter that is known when the statement starts, of a type that `kind` names."""
    bound = binder.bind(arg, PARAMETER)
    no_reads(binder, bound, arg, what)
    binder.expect(bound, wanted, f"{what} is {kind}", arg.span)
    present = at_start(binder.site.catalog, bound)
    if isinstance(present, Const) and present.value is None and present is not UNKNOWN:
        hint = "leave it out, or give it a value"
        binder.problems.error("B504", f"{what} is {kind}, not NULL", arg.span, hint)
    return bound


def _number(binder: ExpressionBinder, spec: WindowSpec, arg: ast.Expr, what: str) -> Bound:
    """A parameter that is a number, and no length of time."""
    if not isinstance(arg, ast.PeriodLiteral):
        return binder.bind(arg, PARAMETER)
    message = f"{what} is a number, not a length of time"
    binder.problems.error("B306", message, arg.span, f"for example {spec.example}")
    return UNKNOWN


def _size(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> Bound:
    if not args:
        binder.problems.error("B503", f"{spec.signature} needs a size", at, f"for example {spec.example}")
        return Const(1)
    bound = _number(binder, spec, args[0], f"the size of {spec.name}")
    no_reads(binder, bound, args[0], "a size")
    present, what = at_start(binder.site.catalog, bound), f"the size of {spec.name} is"
    check_count(binder.problems, present, what, args[0].span, hint=f"for example {spec.example}")
    return bound


def _period_of(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> PeriodArgument:
    return bind_period(binder, args[0], f"the period of {spec.name}")


def _delay(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> PeriodArgument:
    return bind_period(binder, args[0], f"the period of {spec.name}", zero_allowed=True)


def _timestamp(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> Bound:
    bound = _value(binder, spec, args, at)
    if isinstance(bound, Const | Slot) and bound is not UNKNOWN:
        message = f"{spec.name} by a constant gives all events the same time"
        binder.problems.error("B507", message, args[0].span, f"for example {spec.example}")
    return bound


def _value(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> Bound:
    if not args:
        return Const(None)
    bound = _number(binder, spec, args[0], f"what {spec.name} takes per event")
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
    if isinstance(bound, Const | Slot) and bound is not UNKNOWN:
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
    if isinstance(test, Const) and test.value is None:
        message = f"the predicate of {spec.name} is NULL, which never holds"
        binder.problems.error("B301", message, args[0].span, spec.example)
    found, binder.aggregates = binder.aggregates, outer
    return PredicatePlan(test or Const(None), tuple(found))


def _include(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> Bound | None:
    if not args:
        return None
    return _fixed(binder, args[0], Type.BOOLEAN, "include_triggering_event", "true or false")


def _reference(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> Bound | None:
    if not args:
        return None
    return _fixed(binder, args[0], Type.INTEGER, "the reference point", "an instant in ms")


def _flags(binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span) -> frozenset[str]:
    if not args:
        return frozenset()
    if isinstance(args[0], ast.Column):
        message = f"the flow control keyword {args[0].name} stands in quotes"
        binder.problems.error("B508", message, args[0].span, f'write "{args[0].name}"')
        return frozenset()
    text = args[0].value if isinstance(args[0], ast.Constant) else None
    words = [word.strip().upper() for word in str(text).split(",")]
    for word in words:
        if word not in FLAGS:
            message = f"unknown flow control keyword '{word}'; there are {' and '.join(FLAGS)}"
            binder.problems.error("B508", message, args[0].span, did_you_mean(word, FLAGS))
    return frozenset(words)


def _extras(
    binder: ExpressionBinder, spec: WindowSpec, args: list[ast.Expr], at: Span
) -> tuple[tuple[str | None, Bound], ...]:
    text = binder.site.text
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
    "delay": _delay,
    "timestamp": _timestamp,
    "value": _value,
    "keys": _keys,
    "criteria": _criteria,
    "predicate": _predicate,
    "include": _include,
    "reference": _reference,
    "flags": _flags,
    "extras": _extras,
}

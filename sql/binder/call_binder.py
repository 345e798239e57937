"""Binding calls: which kind of function a name is, and whether its arguments fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sql import syntax as ast
from sql.aggregates import base as aggregates
from sql.algebra.derived.analytic_catalog import ANALYTIC_FUNCTIONS
from sql.binder import kuiper, stars
from sql.errors import DataError, Span, did_you_mean
from sql.functions import registry as functions
from sql.language.window_words import GROUP_WINDOWS
from sql.plan.bound import AggregateCall, AnalyticCall, Apply, Bound, Const, Op, PrevCall, Read, Slot
from sql.record import replace
from sql.types import Type, type_of

if TYPE_CHECKING:
    from sql.binder.expression_binder import ExpressionBinder, Place

BARE = ("current_timestamp",)
"""Functions that EPL writes without parentheses."""

MQTT_FIELDS = ("topic", "messageid", "qos", "retained")

WINDOW_FUNCTIONS = {"window_start": "start", "window_end": "end", "window_trigger": "trigger"}

PREVS = {"prev": (1, 2), "prior": (1, 2), "prevtail": (1, 2), "prevcount": (1, 1), "prevwindow": (1, 1)}

ANALYTICS = {item.name: (item.least, item.most) for item in ANALYTIC_FUNCTIONS}
"""The least and the most arguments of analytic functions."""

SCALARS = frozenset({Type.BOOLEAN, Type.INTEGER, Type.FLOAT, Type.NUMBER})
"""Types whose values a function of text takes by their text."""

ANALYTIC_RESULTS = {
    "acc_count": Type.INTEGER,
    "had_changed": Type.BOOLEAN,
    "acc_sum": Type.FLOAT,
    "acc_avg": Type.FLOAT,
}

SCALAR_FORMS = {"max": "greatest", "min": "least"}
"""EPL's max(a, b, …) and min(a, b, …) of several values in one row."""

KEYED_STATE = "it would ask an outside key store for each event; join a scan table, or read a variable"

SPREADS = ("unnest", "extract", "changed_cols", "dedup_trigger")
"""Functions that stand by themselves in SELECT (`sql.binder.spread_binder`)."""

OVER_FUNCTIONS = frozenset({*ANALYTICS, "row_number"})


def bind_call(binder: ExpressionBinder, node: ast.Call, place: Place) -> Bound:
    """The bound form of a call."""
    name = node.name
    if node.over is not None and name not in OVER_FUNCTIONS:
        running = f"acc_{name}"
        hint = f"{running}(…) OVER (PARTITION BY …) runs on with each event" if running in ANALYTICS else None
        binder.problems.error("B316", f"OVER has no effect on {name}()", node.over.span, hint)
    if name in kuiper.HITS:
        return kuiper.bind_hit(binder, node, place)
    if name == "row_number":
        return kuiper.bind_row_number(binder, node, place)
    if name in SPREADS:
        binder.problems.error(
            "B315", f"{name}() stands by itself in SELECT, not in {_inside(place)}", node.span
        )
        return _unknown()
    if name in WINDOW_FUNCTIONS or name == "event_time":
        return _window_function(binder, node, place)
    if name == "istream" and binder.epl:
        return Slot("istream", type=Type.BOOLEAN, span=node.span)
    if name in PREVS:
        return _prev(binder, node, place)
    if name in ANALYTICS:
        return _analytic(binder, node, place)
    if name in SCALAR_FORMS and len(node.args) > 1:
        return _scalar(binder, replace(node, name=SCALAR_FORMS[name]), place)
    if name in ("meta", "mqtt"):
        return _meta(binder, node, place)
    if name == "rate" and node.args and not isinstance(node.args[0], ast.Constant):
        node = replace(node, name=(name := "rate_ts"))
    definition = aggregates.lookup(binder.aggregate_names.get(name, name))
    if definition is not None:
        return _aggregate(binder, node, definition, place)
    return _scalar(binder, node, place)


def _arity(binder: ExpressionBinder, node: ast.Call, least: int, most: int | None) -> bool:
    count = len(node.args)
    if count >= least and (most is None or count <= most):
        return True
    wanted = str(least) if least == most else f"at least {least}" if most is None else f"{least} to {most}"
    plural = "" if wanted == "1" else "s"
    binder.problems.error("B310", f"{node.name}() takes {wanted} argument{plural}, not {count}", node.span)
    return False


def _unknown() -> Bound:
    return Const(None)


def _inside(place: Place) -> str:
    return "an expression" if place.name == "SELECT" else place.name


# --- scalar functions ---------------------------------------------------------------------------------------


def _scalar(binder: ExpressionBinder, node: ast.Call, place: Place) -> Bound:
    if node.name == "current_timestamp" and binder.epl:
        node = replace(node, name="tstamp")
    if node.name == "cast" and len(node.args) == 2 and isinstance(node.args[1], ast.Column):
        node = replace(node, args=(node.args[0], ast.Constant(node.args[1].name, span=node.args[1].span)))
    function = functions.lookup(node.name)
    if function is None:
        return _unknown_function(binder, node)
    least, most = function.arity
    if node.distinct or node.filter is not None or node.group_by is not None:
        binder.problems.error(
            "B311", f"{node.name}() is no aggregate: DISTINCT and FILTER have no effect", node.span
        )
    if not _arity(binder, node, least, most):
        return _unknown()
    if function.in_pairs and len(node.args) % 2:
        names = " and ".join(parameter.name for parameter in function.parameters)
        binder.problems.error(
            "B310", f"{node.name}() takes pairs of {names}, not {len(node.args)} arguments", node.span
        )
        return _unknown()
    args = tuple(binder.bind(arg, place) for arg in node.args)
    for index, (bound, arg) in enumerate(zip(args, node.args, strict=True)):
        parameter = function.parameter(index)
        if not (parameter.as_text and not isinstance(bound, Const) and bound.type in SCALARS):
            what = f"{node.name}() takes {parameter.type.value} for '{parameter.name}'"
            binder.expect(bound, parameter.type, what, arg.span)
        if parameter.constant and not isinstance(bound, Const):
            binder.problems.error("B312", f"{node.name}() needs a constant for '{parameter.name}'", arg.span)
        check_literal(binder, parameter, bound, arg.span)
    return Apply(function, args, type=function.result_type([arg.type for arg in args]), span=node.span)


def check_literal(binder: ExpressionBinder, parameter: functions.Parameter, bound: Bound, span: Span) -> None:
    """Report a literal that the parameter cannot be, such as a pattern that is no regular expression."""
    if parameter.check is None or not isinstance(bound, Const) or bound.value is None:
        return
    if not parameter.type.accepts(type_of(bound.value)):
        return  # reported as that already
    try:
        parameter.check(bound.value)
    except DataError as error:
        binder.problems.error("B307", str(error), span)


def cast(binder: ExpressionBinder, operand: Bound, type_name: str, span: Span) -> Bound:
    """CAST(x AS type) is the function cast(x, "type")."""
    function = functions.lookup("cast")
    assert function is not None
    name = Const(type_name, type=Type.STRING, span=span)
    from sql.types import type_named

    return Apply(function, (operand, name), type=type_named(type_name) or Type.ANY, span=span)


def _unknown_function(binder: ExpressionBinder, node: ast.Call) -> Bound:
    from sql.functions.refused import REFUSED

    span = node.name_span if node.name_span.end else node.span
    if node.name == "get_keyed_state":
        binder.problems.error("B314", f"get_keyed_state() is not supported: {KEYED_STATE}", span)
    elif node.name in REFUSED:
        binder.problems.error("B313", f"{node.name}() is refused: {REFUSED[node.name]}", span)
    else:
        known = [
            *functions.names(),
            *aggregates.names(),
            *ANALYTICS,
            *PREVS,
            *WINDOW_FUNCTIONS,
            *kuiper.HITS,
            *SPREADS,
            "row_number",
            *GROUP_WINDOWS,
        ]
        own = f"a file beside the rules with `def {node.name}(x: float) -> float:` and a docstring makes it known"
        binder.problems.error(
            "B204", f"unknown function '{node.name}'", span, did_you_mean(node.name, known) or own
        )
    return _unknown()


# --- what operators keep ------------------------------------------------------------------------------------


def _window_function(binder: ExpressionBinder, node: ast.Call, place: Place) -> Bound:
    _arity(binder, node, 0, 0)
    if node.name == "event_time":
        return Slot("event_time", type=Type.INTEGER, span=node.span)
    if not (place.windows and binder.has_window):
        where = "needs a window in GROUP BY and stands in SELECT, HAVING or ORDER BY"
        binder.problems.error("B320", f"{node.name}() {where}", node.span)
    return Slot("window", WINDOW_FUNCTIONS[node.name], type=Type.INTEGER, span=node.span)


def _meta(binder: ExpressionBinder, node: ast.Call, place: Place) -> Bound:
    if not _arity(binder, node, 1, 1):
        return _unknown()
    binder.uses_meta = True
    (asked,) = node.args
    if isinstance(asked, ast.Star):
        return binder.scope.meta(node.span, _meta_source(binder, node, asked.table, "*"))
    path = _path(asked)
    if path is None:
        binder.problems.error(
            "B321", f"{node.name}() takes the name of a metadata field, e.g. {node.name}(topic)", asked.span
        )
        return _unknown()
    if node.name == "mqtt" and path[-1] not in MQTT_FIELDS:
        binder.problems.error("B321", f"mqtt() knows {', '.join(MQTT_FIELDS)} of a message", asked.span)
    table = path[0] if len(path) > 1 and binder.scope.source_named(path[0]) is not None else None
    bound = binder.scope.meta(node.span, _meta_source(binder, node, table, path[-1]))
    for name in path if table is None else path[1:]:
        bound = Op("field", (bound,), name, span=node.span)
    return bound


def _meta_source(binder: ExpressionBinder, node: ast.Call, table: str | None, wanted: str) -> int:
    """The source whose metadata is read: the one that is named, or the only one."""
    sources = binder.scope.sources
    if table is None and len(sources) > 1:
        binder.problems.error(
            "B321",
            f"{node.name}() of several streams needs the stream",
            node.span,
            f"write {node.name}({sources[0].alias}.{wanted})",
        )
    source = 0 if table is None else binder.scope.source_named(table)
    if source is None:
        binder.scope.unknown_source(table or "", node.span)
    return source or 0


def _path(node: ast.Expr) -> list[str] | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.Column):
        return [node.name] if node.table is None else [node.table, node.name]
    if isinstance(node, ast.Field):
        base = _path(node.base)
        return None if base is None else [*base, node.name]
    return None


def _prev(binder: ExpressionBinder, node: ast.Call, place: Place) -> Bound:
    least, most = PREVS[node.name]
    if not _arity(binder, node, least, most):
        return _unknown()
    if not place.prevs:
        binder.problems.error("B322", f"{node.name}() is not allowed in {place.name}", node.span)
        return _unknown()
    inner = replace(place, prevs=False, aggregates=False)
    value: Bound | None
    if isinstance(node.args[-1], ast.Star):
        value = binder.scope.read_all(0, node.args[-1].span)
    else:
        value = binder.bind(node.args[-1], inner)
    default = 0 if node.name == "prevtail" else 1
    index = binder.bind(node.args[0], inner) if len(node.args) == 2 else Const(default)
    if node.name == "prior" and not (
        isinstance(index, Const) and isinstance(index.value, int) and index.value >= 0
    ):
        binder.problems.error("B323", "prior() needs a constant number of events", node.args[0].span)
        return _unknown()
    source = next((part.source for part in value.walk() if isinstance(part, Read)), 0)
    if binder.scope.sources and binder.scope.sources[source].tag is not None:
        source = 0  # the matches of a pattern are one relation, whichever tag is read
    call = PrevCall(node.name, source, index, value, span=node.span)
    result = (
        Type.INTEGER if node.name == "prevcount" else Type.ARRAY if node.name == "prevwindow" else value.type
    )
    return Slot("prev", _remember(binder.prevs, call), type=result, span=node.span)


def _remember(calls: list[Any], call: Any) -> int:
    """The place of a call in its list; equal calls share one."""
    if call in calls:
        return calls.index(call)
    calls.append(call)
    return len(calls) - 1


def _analytic(binder: ExpressionBinder, node: ast.Call, place: Place) -> Bound:
    least, most = ANALYTICS[node.name]
    if not _arity(binder, node, least, most):
        return _unknown()
    if node.name.startswith("acc_") and len(node.args) == 2:
        binder.problems.error(
            "B310",
            f"{node.name}() takes 1 argument or 3, not 2",
            node.span,
            f"{node.name}(x, begin, reset): conditions that open and close",
        )
        return _unknown()
    if not place.analytics:
        binder.problems.error(
            "B324", f"analytic function {node.name}() is not allowed in {place.name}", node.span
        )
        return _unknown()
    inner = replace(_arguments(node, place), prevs=False)
    over = node.over or ast.Over()
    for order in over.order_by:
        binder.problems.error(
            "B316", f"ORDER BY has no effect on {node.name}(): events come in their order", order.span
        )
    args = tuple(_analytic_arguments(binder, node, inner))
    call = AnalyticCall(
        node.name,
        args,
        partition_by=tuple(binder.bind(part, inner) for part in over.partition_by),
        when=binder.condition(over.when, replace(inner, name=f"WHEN of {node.name}()")),
        span=node.span,
    )
    value = args[1 if node.name.startswith(("changed", "had")) else 0] if args else None
    result = ANALYTIC_RESULTS.get(node.name, value.type if value is not None else Type.ANY)
    return Slot("analytic", _remember(binder.analytics, call), type=result, span=node.span)


def _analytic_arguments(binder: ExpressionBinder, node: ast.Call, place: Place) -> list[Bound]:
    out: list[Bound] = []
    for index, arg in enumerate(node.args):
        if not isinstance(arg, ast.Star):
            bound = binder.bind(arg, place)
            wanted = _analytic_type(node.name, index)
            binder.expect(
                bound, wanted, f"argument {index + 1} of {node.name}() is a {wanted.value}", arg.span
            )
            out.append(bound)
            if node.name == "lag" and index == 1:
                kuiper.check_rows_back(binder, bound, arg.span)
        elif node.name == "acc_count" and not index:
            out.append(Const(1, type=Type.INTEGER, span=arg.span))  # every row counts
        elif node.name == "had_changed" and index:
            out += stars.every_column(binder, arg)
        elif node.name == "changed_col" and index:
            out.append(stars.row_value(binder, arg, place))
        else:
            binder.problems.error("B331", f"{node.name}(*) has no meaning; name a column", arg.span)
            out.append(_unknown())
    return out


def _arguments(node: ast.Call, place: Place) -> Place:
    name = f"the arguments of {node.name}()"
    return replace(place, aggregates=False, windows=False, of_window=False, name=name)


def _analytic_type(name: str, index: int) -> Type:
    """The requirement on an argument of an analytic function."""
    if name in ("changed_col", "had_changed"):
        return Type.ANY if index else Type.BOOLEAN
    if name == "lag":
        return (Type.ANY, Type.INTEGER, Type.ANY, Type.BOOLEAN)[index]
    if name.startswith("acc") and name != "acc_count" and not index:
        return Type.NUMBER
    return Type.BOOLEAN if name.startswith("acc") and index else Type.ANY


def _aggregate(
    binder: ExpressionBinder, node: ast.Call, definition: aggregates.Aggregate, place: Place
) -> Bound:
    if not place.aggregates:
        hint = (
            "compute it in one rule, and read its results in another" if place.name.endswith("()") else None
        )
        if place.name == "WHERE":
            hint = "use HAVING to filter by an aggregate; WHERE sees one event at a time"
        binder.problems.error(
            "B330", f"aggregate {node.name}() is not allowed in {place.name}", node.span, hint
        )
        return _unknown()
    inner = _arguments(node, place)
    star = len(node.args) == 1 and isinstance(node.args[0], ast.Star)
    counts_rows = all(parameter.optional for parameter in definition.parameters)
    if star and not (definition.whole_row or counts_rows):
        binder.problems.error("B331", f"{node.name}(*) has no meaning; name a column", node.span)
        return _unknown()
    least = sum(not parameter.optional and not parameter.variadic for parameter in definition.parameters)
    most = (
        None if any(parameter.variadic for parameter in definition.parameters) else len(definition.parameters)
    )
    if not star and not _arity(binder, node, 0 if counts_rows else least, most):
        return _unknown()
    values, constants = _split_arguments(binder, node, definition, inner)
    _check_aggregate_types(binder, node, definition, values)
    if definition.needs_event:
        binder.scope.read_all(0, node.span)  # its result is whole events
    call = AggregateCall(
        definition,
        values,
        constants,
        node.distinct,
        binder.condition(node.filter, replace(inner, name="FILTER")),
        None if node.group_by is None else tuple(binder.bind(part, inner) for part in node.group_by),
        span=node.span,
    )
    result = definition.result_type([value.type for value in values])
    return Slot("aggregate", _remember(binder.aggregates, call), type=result, span=node.span)


def _split_arguments(
    binder: ExpressionBinder, node: ast.Call, definition: aggregates.Aggregate, place: Place
) -> tuple[tuple[Bound, ...], tuple[Any, ...]]:
    """Arguments evaluated per event, and trailing ones that are constants."""
    first_constant = len(definition.parameters) - definition.constants
    values: list[Bound] = []
    constants: list[Any] = []
    for index, arg in enumerate(node.args):
        if isinstance(arg, ast.Star):
            if definition.whole_row:
                values.append(stars.row_value(binder, arg, place))
            continue
        descending = isinstance(arg, ast.Ordering) and arg.descending
        bound = binder.bind(arg.operand if isinstance(arg, ast.Ordering) else arg, place)
        if definition.constants and index >= first_constant:
            constants.append(_constant_of(binder, node.name, definition.parameters[index], bound, arg.span))
        else:
            values.append(Op("descending", (bound,), span=arg.span) if descending else bound)
    return tuple(values), tuple(constants)


def _constant_of(
    binder: ExpressionBinder, name: str, parameter: functions.Parameter, bound: Bound, span: Span
) -> Any:
    """The value of an aggregate's parameter that is a constant."""
    if not isinstance(bound, Const):
        binder.problems.error("B332", f"{name}() needs a constant for '{parameter.name}'", span)
        return None
    binder.expect(
        bound, parameter.type, f"{name}() takes {parameter.type.value} for '{parameter.name}'", span
    )
    check_literal(binder, parameter, bound, span)
    return bound.value


def _check_aggregate_types(
    binder: ExpressionBinder, node: ast.Call, definition: aggregates.Aggregate, values: tuple[Bound, ...]
) -> None:
    for index, value in enumerate(values):
        if not definition.parameters or isinstance(node.args[min(index, len(node.args) - 1)], ast.Star):
            continue
        parameter = definition.parameters[min(index, len(definition.parameters) - 1)]
        what = f"{node.name}() takes {parameter.type.value} for '{parameter.name}'"
        span = value.span if value.span.end else node.span
        binder.expect(value, parameter.type, what, span)
        check_literal(binder, parameter, value, span)

"""Binding calls: which kind of function a name is, and whether its arguments fit."""

from __future__ import annotations

from sql import syntax as ast
from sql.aggregates import base as aggregates
from sql.binder import kuiper
from sql.binder.binding import Binding
from sql.binder.calls.aggregating_calls import bind_aggregate
from sql.binder.calls.call_arguments import check_arity
from sql.binder.calls.earlier_calls import ANALYTICS, PREVS, bind_analytic, bind_prev
from sql.binder.calls.scalar_calls import bind_scalar
from sql.binder.catalog_names import place_of_window
from sql.binder.place import Place
from sql.binder.scope import UNKNOWN
from sql.errors import did_you_mean
from sql.functions import registry as functions
from sql.plan.bound import Bound, Op, Slot
from sql.record import replace
from sql.syntax.window_words import GROUP_WINDOWS
from sql.types import Type

BARE = ("current_timestamp",)
"""Functions that EPL writes without parentheses."""

MQTT_FIELDS = ("topic", "messageid", "qos", "retained")

WINDOW_FUNCTIONS = {"window_start": "start", "window_end": "end", "window_trigger": "trigger"}

SCALAR_FORMS = {"max": "greatest", "min": "least"}
"""EPL's max(a, b, …) and min(a, b, …) of several values in one row."""

KEYED_STATE = "it would ask an outside key store for each event; join a scan table, or read a variable"

SPREADS = ("unnest", "extract", "changed_cols", "dedup_trigger")
"""Functions that stand by themselves in SELECT (`sql.binder.spread_binder`)."""

OVER_FUNCTIONS = frozenset({*ANALYTICS, "row_number"})


def bind_call(binder: Binding, node: ast.Call, place: Place) -> Bound:
    """The bound form of a call."""
    name = node.name
    if node.over is not None and name not in OVER_FUNCTIONS and name in known_names():
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
        return UNKNOWN
    if name in ("grouping", "grouping_id"):
        return _grouping(binder, node, place)
    if name in WINDOW_FUNCTIONS or name == "event_time":
        return _window_function(binder, node, place)
    if name == "istream" and binder.kind.epl:
        check_arity(binder, node, 0, 0)
        return Slot("istream", type=Type.BOOLEAN, span=node.span)
    if name in PREVS and binder.kind.aggregate_name(name) == name:  # prior of stream queries is an aggregate
        return bind_prev(binder, node, place)
    if name in ANALYTICS:
        return bind_analytic(binder, node, place)
    if name in ("meta", "mqtt"):
        return _meta(binder, node, place)
    node = _renamed(binder, node)
    definition = aggregates.lookup(binder.kind.aggregate_name(node.name))
    if definition is not None:
        return bind_aggregate(binder, node, definition, place)
    function = functions.lookup(node.name)
    if function is not None:
        return bind_scalar(binder, node, function, place)
    column = _column_called(binder, node)
    return _unknown_function(binder, node) if column is None else binder.bind(column, place)


def _column_called(binder: Binding, node: ast.Call) -> ast.Index | None:
    """EPL's `labels('zone')` for the value of a key in a column; None where no column is called so."""
    name = binder.site.text[node.name_span.start : node.name_span.end]
    if len(node.args) != 1 or name.lower() != node.name or not binder.scope.holders(name):
        return None
    return ast.Index(ast.Column(name, span=node.name_span), node.args[0], span=node.span)


def _renamed(binder: Binding, node: ast.Call) -> ast.Call:
    """The call by the name of its function, where its arguments or the language decide that."""
    name = node.name
    if name in SCALAR_FORMS and len(node.args) > 1:
        return replace(node, name=SCALAR_FORMS[name])
    if name == "rate" and node.args and not isinstance(node.args[0], ast.Constant):
        return replace(node, name="rate_ts")
    if name == "current_timestamp" and binder.kind.epl:
        return replace(node, name="tstamp")
    return node


def _inside(place: Place) -> str:
    return "an expression" if place.name == "SELECT" else place.name


# --- scalar functions ---------------------------------------------------------------------------------------


def known_names() -> list[str]:
    """Everything that is called like a function."""
    return [
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


def _unknown_function(binder: Binding, node: ast.Call) -> Bound:
    from sql.functions.refused import NAMED_OTHERWISE, REFUSED

    span = node.name_span if node.name_span.end else node.span
    if node.name == "get_keyed_state":
        binder.problems.error("B314", f"get_keyed_state() is not supported: {KEYED_STATE}", span)
    elif node.name in REFUSED:
        binder.problems.error("B313", f"{node.name}() is refused: {REFUSED[node.name]}", span)
    else:
        own = (
            f"a file beside the rules with `def {node.name}(x: float) -> float:` "
            "and a docstring makes it known"
        )
        if binder.kind.mode == "lots":  # Apama selects events: `select Average(t.symbol, mean(t.price))`
            own = "of an event write the columns: SELECT t.symbol AS symbol, mean(t.price) AS mean"
        meant = NAMED_OTHERWISE.get(node.name)
        hint = f"write {meant}(…)" if meant else place_of_window(node.name, binder.kind)
        hint = hint or did_you_mean(node.name, known_names()) or own
        binder.problems.error("B204", f"unknown function '{node.name}'", span, hint)
    return UNKNOWN


# --- what operators keep ------------------------------------------------------------------------------------


def _window_function(binder: Binding, node: ast.Call, place: Place) -> Bound:
    check_arity(binder, node, 0, 0)
    if node.name == "event_time":
        return Slot("event_time", type=Type.INTEGER, span=node.span)
    if not (place.windows and binder.kind.has_window):
        where = "needs a window in GROUP BY and stands in SELECT, HAVING or ORDER BY"
        binder.problems.error("B320", f"{node.name}() {where}", node.span)
    return Slot("window", WINDOW_FUNCTIONS[node.name], type=Type.INTEGER, span=node.span)


def _grouping(binder: Binding, node: ast.Call, place: Place) -> Bound:
    """A number for the keys that the grouping set of a row lacks."""
    if not check_arity(binder, node, 1, 1 if node.name == "grouping" else None):
        return UNKNOWN
    if not (place.aggregates and binder.grouping.sets):
        message = f"{node.name}() stands in SELECT, HAVING or ORDER BY beside rollup, cube or grouping sets"
        binder.problems.error("B545", message, node.span)
        return UNKNOWN
    keys: list[Bound] = []
    for arg in node.args:
        key = binder.bind(arg, replace(place, aggregates=False))
        if key not in binder.grouping.keys or key in keys:
            binder.problems.error("B545", f"{node.name}() takes keys of GROUP BY, each once", arg.span)
            return UNKNOWN
        keys.append(key)
    return binder.grouping.number(keys, node.span)


def _meta(binder: Binding, node: ast.Call, place: Place) -> Bound:
    if not check_arity(binder, node, 1, 1):
        return UNKNOWN
    binder.uses_meta = True
    (asked,) = node.args
    if isinstance(asked, ast.Star):
        if asked.excluded or asked.replaced:
            message = f"{node.name}(*) is all metadata; EXCEPT and REPLACE have no effect on it"
            hint = f"remove a field with erase({node.name}(*), 'topic')"
            binder.problems.error("B321", message, asked.span, hint)
        return binder.scope.meta(node.span, _meta_source(binder, node, asked.table, "*"))
    path = _path(asked)
    if path is None:
        binder.problems.error(
            "B321", f"{node.name}() takes the name of a metadata field, e.g. {node.name}(topic)", asked.span
        )
        return UNKNOWN
    if node.name == "mqtt" and path[-1] not in MQTT_FIELDS:
        binder.problems.error("B321", f"mqtt() knows {', '.join(MQTT_FIELDS)} of a message", asked.span)
    table = path[0] if len(path) > 1 and binder.scope.source_named(path[0]) is not None else None
    bound = binder.scope.meta(node.span, _meta_source(binder, node, table, path[-1]))
    for name in path if table is None else path[1:]:
        bound = Op("field", (bound,), name, span=node.span)
    return bound


def _meta_source(binder: Binding, node: ast.Call, table: str | None, wanted: str) -> int:
    """The source whose metadata is read: the one that is named, or the only one."""
    sources = binder.scope.sources
    if table is None and len(sources) > 1:
        message = f"{node.name}() of several streams needs the stream"
        binder.problems.error("B321", message, node.span, f"write {node.name}({sources[0].alias}.{wanted})")
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

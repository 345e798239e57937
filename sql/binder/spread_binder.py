"""Functions whose result is no column: several columns, several rows, or a row at a later time.

They stand as items of SELECT by themselves. The item puts the value into the row under a name no column has;
the output stage (`sql.algebra.output.row_order`) takes it out again and makes rows or columns of it.
"""

from __future__ import annotations

from typing import Any, Literal

from sql import syntax as ast
from sql.binder import stars
from sql.binder.binding import Binding
from sql.binder.calls.call_binder import SPREADS
from sql.binder.constants import constant_value
from sql.binder.place import Place
from sql.functions.internal import EXTRACT, REQUEST, UNNEST
from sql.plan.bound import Apply, Bound
from sql.plan.clauses import ItemPlan, SpreadPlan
from sql.types import Type


class SpreadBinder:
    """Binds the items of one SELECT that are spread out."""

    def __init__(self, binder: Binding, place: Place) -> None:
        self.binder = binder
        self.place = place
        self.found: list[SpreadPlan] = []

    def handles(self, item: ast.SelectItem) -> bool:
        """True if the item is one of these functions."""
        return isinstance(item.expr, ast.Call) and item.expr.name in SPREADS

    def bind(self, item: ast.SelectItem) -> list[ItemPlan]:
        """The items that put the values into the row."""
        call = item.expr
        assert isinstance(call, ast.Call)
        problems = self.binder.problems
        if item.invisible:
            problems.error("B315", f"invisible has no effect on {call.name}()", item.span)
        if call.over is not None:
            problems.error("B316", f"OVER has no effect on {call.name}()", call.over.span)
        if call.name == "changed_cols":
            return self._changes(call, item)
        if call.name == "dedup_trigger":
            return self._requests(call, item)
        if any(spread.kind != "changes" for spread in self.found):
            message = "a second function that makes rows or columns; a SELECT takes one"
            problems.error("B315", message, call.span, "use a second rule on a memory stream")
        if len(call.args) != 1:
            problems.error("B310", f"{call.name}() takes 1 argument, not {len(call.args)}", call.span)
            return []
        if call.name == "extract" and item.alias is not None:
            problems.error("B315", "AS has no effect on extract(): the keys name the columns", item.span)
        bound = self._value(call, call.args[0])
        name = f"${call.name}"
        kind: Literal["rows", "columns"] = "rows" if call.name == "unnest" else "columns"
        self.found.append(SpreadPlan(kind, ((name, None),), item.alias or call.name))
        return [ItemPlan(name, bound)]

    def _value(self, call: ast.Call, node: ast.Expr) -> Bound:
        function = UNNEST if call.name == "unnest" else EXTRACT
        bound = self.binder.bind(node, self.place)
        wanted = function.parameters[0].type
        self.binder.expect(bound, wanted, f"{call.name}() takes {wanted.value}", node.span)
        return Apply(function, (bound,), type=wanted, span=call.span)

    def _changes(self, call: ast.Call, item: ast.SelectItem) -> list[ItemPlan]:
        problems = self.binder.problems
        if self.binder.kind.epl:
            problems.error(
                "B315", "changed_cols() stands in eKuiper's rules only", call.span, "compare with prior(1, x)"
            )
        if item.alias is not None:
            problems.error(
                "B315", "AS has no effect on changed_cols(): its first argument is the prefix", item.span
            )
        if len(call.args) < 3:
            message = f"changed_cols() takes at least 3 arguments, not {len(call.args)}"
            problems.error("B310", message, call.span, "changed_cols(prefix, ignore_null, column, …)")
            return []
        prefix, ignore_null = (
            self._constant(node, kind) for node, kind in zip(call.args, (str, bool), strict=False)
        )
        out: list[ItemPlan] = []
        names: list[tuple[str, str | None]] = []
        for node in call.args[2:]:
            for value, column in self._watched(node):
                name = f"$changed{len(self.found)}.{len(out)}"
                out.append(ItemPlan(name, value))
                names.append((name, column))
        self.found.append(SpreadPlan("changes", tuple(names), "", prefix or "", bool(ignore_null)))
        return out

    def _watched(self, node: ast.Expr) -> list[tuple[Bound, str | None]]:
        """The value that one argument watches, and its column: the name it would have in SELECT."""
        if isinstance(node, ast.Star):
            return [(stars.row_value(self.binder, node, self.place), None)]
        column = self.binder.site.text[node.span.start : node.span.end]
        if isinstance(node, ast.Column | ast.Field | ast.Call):
            column = node.name
        return [(self.binder.bind(node, self.place), column)]

    def _requests(self, call: ast.Call, item: ast.SelectItem) -> list[ItemPlan]:
        problems, kind = self.binder.problems, self.binder.kind
        again = any(spread.kind == "requests" for spread in self.found)
        if kind.epl or kind.mode == "sample" or again:
            problems.error(
                "B315", "dedup_trigger() stands once, in eKuiper's rules without a window", call.span
            )
        if len(call.args) != 4:
            message = f"dedup_trigger() takes 4 arguments, not {len(call.args)}"
            problems.error("B310", message, call.span, "dedup_trigger(start, end, now, expire_ms)")
            return []
        parts = tuple(self.binder.bind(node, self.place) for node in call.args[:3])
        for bound, node in zip(parts, call.args, strict=False):
            self.binder.expect(bound, Type.INTEGER, "dedup_trigger() takes milliseconds", node.span)
        expire_ms = self._constant(call.args[3], int) or 0
        self.found.append(
            SpreadPlan("requests", (("$trigger", None),), item.alias or call.name, expire_ms=expire_ms)
        )
        return [ItemPlan("$trigger", Apply(REQUEST, parts, type=Type.ARRAY, span=call.span))]

    def _constant(self, node: ast.Expr, kind: type) -> Any:
        found = constant_value(self.binder.site.catalog, self.binder.bind(node, self.place))
        if found.__class__ is kind:
            return found
        what = {
            str: "a prefix as text",
            bool: "true or false for ignore_null",
            int: "a number of milliseconds",
        }[kind]
        self.binder.problems.error("B312", f"a constant is needed here: {what}", node.span)
        return None

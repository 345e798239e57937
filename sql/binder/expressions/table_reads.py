"""Reading tables by key in any expression: `T[k].c`, `T.c`, `T[k]`, `T.keys()`."""

from __future__ import annotations

from sql import syntax as ast
from sql.binder.binding import Binding
from sql.binder.place import Place
from sql.errors import Span, did_you_mean
from sql.plan.bound import Bound, Const, TableRead
from sql.types import Type


def is_table(binder: Binding, name: str) -> bool:
    """True if a name means a table here: one is declared, and no source or column hides it."""
    stream = binder.site.catalog.streams.get(name)
    if stream is None or stream.kind != "table" or binder.scope.source_named(name) is not None:
        return False
    return not binder.scope.holders(name)


def row(binder: Binding, name: str, keys: tuple[ast.Expr, ...], place: Place, span: Span) -> Bound:
    """The row of a table at a key; without keys the one row of a table that has none."""
    table = binder.site.catalog.relations[name]
    bound = tuple(binder.bind(key, place) for key in keys)
    wanted = table.declaration.keys
    if len(bound) != len(wanted):
        what = f"[{', '.join(wanted)}]" if wanted else "no key"
        message = f"table '{name}' is read by {what}, not by {len(bound)} values"
        hint = f"write {name}[…].column" if wanted else f"write {name}.column"
        binder.problems.error("B541", message, span, hint)
        return Const(None)
    for key, value in zip(wanted, bound, strict=True):
        wanted = table.declaration.columns[key]
        binder.expect(value, wanted, f"key '{key}' of table '{name}' is {wanted.value}", span)
    binder.scope.tables.add(name)
    return TableRead(name, bound, type=Type.OBJECT, span=span)


def column(binder: Binding, base: Bound, name: str, span: Span) -> Bound:
    """A column of a table's row."""
    if not isinstance(base, TableRead):
        return base
    columns = binder.site.catalog.relations[base.table].declaration.columns
    if name not in columns:
        binder.problems.error(
            "B201", f"unknown column '{name}' in table '{base.table}'", span, did_you_mean(name, columns)
        )
        return Const(None)
    return TableRead(base.table, base.keys, name, type=columns[name], span=span)


def keys(binder: Binding, name: str, span: Span) -> Bound:
    """`T.keys()`."""
    binder.scope.tables.add(name)
    return TableRead(name, None, type=Type.ARRAY, span=span)

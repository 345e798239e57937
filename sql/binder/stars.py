"""`*` as an argument: the row as one value, or its columns one by one; with EXCEPT and REPLACE."""

from __future__ import annotations

from sql import functions
from sql import syntax as ast
from sql.binder.binding import Binding
from sql.binder.place import Place
from sql.binder.scope import Scope
from sql.functions.internal import MATCH_VALUE, ROW_VALUE, WHOLE_ROW
from sql.plan.bound import Apply, Bound, Const
from sql.types import Type


def tags_of(scope: Scope) -> tuple[str, ...] | None:
    """The tags of the pattern whose matches alone a statement reads; None where it reads something else."""
    own = scope.sources[: scope.own]
    return tuple(source.alias for source in own) if all(source.tag is not None for source in own) else None


def row_value(binder: Binding, star: ast.Star, place: Place) -> Bound:
    """The event as an object, the match of a pattern, or the joined row of eKuiper's rules; REPLACE wins
    where EXCEPT names the same column."""
    tags = tags_of(binder.scope) if star.table is None else None
    reads = tuple(binder.scope.read_all(index, star.span) for index in _chosen(binder, star))
    row: Bound = Apply(ROW_VALUE, reads, type=Type.OBJECT, span=star.span)
    if tags is not None:
        parts = [part for tag, read in zip(tags, reads, strict=True) for part in (_text(tag, star), read)]
        row = Apply(MATCH_VALUE, tuple(parts), type=Type.OBJECT, span=star.span)
    check_excluded(binder, star)
    if star.excluded:
        row = _applied("erase", row, *(_text(name, star) for name in star.excluded))
    if star.replaced:
        pairs: list[Bound] = []
        for item in star.replaced:
            pairs += [_text(item.alias or item.text, star), binder.bind(item.expr, place)]
        row = _applied("object_concat", row, _applied("object_construct", *pairs))
    return row


def every_column(binder: Binding, star: ast.Star) -> list[Bound]:
    """`*` as arguments: the declared columns, or the whole row of a stream without any."""
    check_excluded(binder, star)
    if star.replaced:
        binder.problems.error(
            "B331", "REPLACE has no meaning here: columns are compared, not shown", star.span
        )
    found = [column for index in _chosen(binder, star) for column in _columns_of(binder, star, index)]
    if not found:
        binder.problems.error("B331", "* stands for no column: the pattern has no tags", star.span)
    return found


def _columns_of(binder: Binding, star: ast.Star, index: int) -> list[Bound]:
    """The columns of one source as arguments."""
    columns = binder.scope.sources[index].columns
    if columns is not None:
        names = [name for name in columns if not name.startswith("$") and name not in star.excluded]
        return [binder.scope.read(index, name, star.span) for name in names]
    row: Bound = binder.scope.read_all(index, star.span)
    if star.excluded:
        row = Apply(ROW_VALUE, (row,), type=Type.OBJECT, span=star.span)
        row = _applied("erase", row, *(_text(name, star) for name in star.excluded))
    return [Apply(WHOLE_ROW, (row,), span=star.span)]


def check_excluded(binder: Binding, star: ast.Star) -> None:
    """Report a name after EXCEPT or REPLACE that no source has."""
    for name in (*star.excluded, *(item.alias for item in star.replaced if item.alias)):
        if not any(source.columns is None or name in source.columns for source in binder.scope.sources):
            binder.scope.unknown(name, star.span)


def _chosen(binder: Binding, star: ast.Star) -> list[int]:
    """The sources that a star stands for."""
    scope = binder.scope
    if star.table is None:
        if binder.kind.epl and scope.own > 1 and tags_of(scope) is None:
            names = " or ".join(f"{source.alias}.*" for source in scope.sources[: scope.own])
            message = "* is the event of one source, and the statement joins several"
            binder.problems.error("B331", message, star.span, f"write {names}")
        return list(range(scope.own))
    index = scope.source_named(star.table)
    if index is None:
        scope.unknown_source(star.table, star.span)
    return [index or 0]


def _applied(name: str, *args: Bound) -> Bound:
    function = functions.lookup(name)
    assert function is not None
    return Apply(function, args, type=Type.OBJECT, span=args[0].span)


def _text(name: str, star: ast.Star) -> Const:
    return Const(name, type=Type.STRING, span=star.span)

"""Checks of parts that are right by themselves and contradict each other in one statement."""

from __future__ import annotations

from collections.abc import Sequence

from sql import syntax as ast
from sql.binder import kuiper
from sql.catalog.streams import Stream
from sql.errors import Problems, Span
from sql.plan.bound import Read, event_read
from sql.plan.logical import AGGREGATE_HITS, Plan


def check_clauses(problems: Problems, select: ast.Select, streams: Sequence[Stream]) -> None:
    """Clauses that cannot stand together, before anything is bound."""
    error = problems.error
    if select.windows:
        _check_windows(problems, select)
    inserts = "istream" if select.insert_into is None else select.insert_into.selector
    for selector in sorted({select.selector or "istream", inserts} - {"istream"} if select.windows else ()):
        error(
            "B604", f"{selector} has no effect on a window in GROUP BY: it has no remove stream", select.span
        )
    if select.lots and inserts not in ("istream", select.selector):
        hint = "select rstream inserts the items that leave"
        message = f"insert {inserts} has no effect on a stream query: it selects one side"
        error("B604", message, select.span, hint)
    kuiper.check_sources(problems, select, streams)
    if select.source is None and select.context is None:
        error("B002", "FROM is missing", select.span, "add FROM and a stream")


def _check_windows(problems: Problems, select: ast.Select) -> None:
    """Beside windows in GROUP BY."""
    error = problems.error
    if len(select.windows) > 1:
        first, second = select.windows[0], select.windows[1]
        names = f"{second.name.upper()}WINDOW, beside {first.name.upper()}WINDOW"
        message = f"a second window, {names}"
        error("B523", message, second.span, "a rule has one window; use a second rule on a memory stream")
    if any(isinstance(s, ast.StreamSource) and s.windows for s in select.sources):
        error("B524", "a window in GROUP BY and windows in FROM cannot be combined", select.windows[0].span)
    if select.output:
        message = "an output limit has no effect on a window in GROUP BY, which fires by itself"
        error("B603", message, select.output.span)
    if any(isinstance(s, ast.StreamSource) and s.pattern for s in select.sources):
        message = "a window in GROUP BY cannot stand over a pattern"
        hint = "put a window into FROM, or insert the matches into a stream"
        error("B807", message, select.windows[0].span, hint)


def check_plan(problems: Problems, select: ast.Select, plan: Plan, *, is_epl: bool) -> None:
    """Parts that cannot work together, once all are bound."""
    if plan.mode == "lots":
        _check_lots(problems, select, plan)
    if plan.mode == "sample":
        _check_sampled_having(problems, select, plan)
    if any(join.kind in ("left", "right", "full") for join in plan.joins):
        _check_outer_joins(problems, plan)
    calls = [(call.name, call.span) for call in plan.analytics] + [
        (call.name, call.span) for call in plan.prevs
    ]
    if calls and plan.joins:
        name, span = calls[0]
        message = f"{name}() reads the events of one stream and cannot stand in a join"
        problems.error("B325", message, span, "compute it in a rule of its own, and join its stream")
    _check_prevs(problems, plan)
    if plan.mode == "delta":
        _check_kept_events(problems, select, plan, is_epl=is_epl)


def _check_lots(problems: Problems, select: ast.Select, plan: Plan) -> None:
    retains_all = [source.lot is not None and source.lot.retains_all for source in plan.sources]
    if any(retains_all) and len(plan.sources) > 1:
        at = select.sources[retains_all.index(True)].span
        problems.error("B530", "'retain all' cannot stand in a join", at, "write retain n, or within d")
    if plan.aggregates or plan.group_by:
        _check_no_items(problems, plan)
    if plan.selector != "rstream":
        return
    if plan.aggregates:
        message = "an aggregate stream query has no remove stream"
        problems.error("B531", message, select.span, "select without rstream")
    if any(retains_all):
        problems.error("B530", "'retain all' has no remove stream", select.span)


def _check_outer_joins(problems: Problems, plan: Plan) -> None:
    """Report what ON reads of sources that are joined later: a row stands beside NULL before they are."""
    for place, join in enumerate(plan.joins, start=1):
        for part in join.on.walk() if join.on is not None else ():
            if isinstance(part, Read) and place < part.source < len(plan.sources):
                message = f"ON reads '{plan.sources[part.source].alias}', which is joined after it"
                problems.error("B536", message, part.span, "join it first, or write the condition in its ON")


def _check_no_items(problems: Problems, plan: Plan) -> None:
    """Report what an aggregate stream query reads of single items: it gives one row, or one of a group."""
    for item in plan.items:
        read = event_read(item.value, plan.group_by)
        if read is not None:
            message = "an aggregate stream query shows keys and aggregates, and this column is of one item"
            problems.error("B535", message, read.span, "group by it, or aggregate it: last(…)")


def _check_sampled_having(problems: Problems, select: ast.Select, plan: Plan) -> None:
    if plan.having is None or plan.aggregates or plan.group_by:
        return
    if not any(call.name in AGGREGATE_HITS for call in plan.hits):
        message = "HAVING reads no column and no aggregate"
        problems.error("B605", message, _at(select.having, select.span), "use WHERE")


def _check_prevs(problems: Problems, plan: Plan) -> None:
    if plan.prevs and plan.mode != "delta":
        problems.error("B322", "prev and prior read the windows of FROM", plan.prevs[0].span)
    needs_window = any(call.name != "prior" for call in plan.prevs)
    if needs_window and plan.sources and not plan.sources[0].keeps:
        problems.error("B324", "prev() needs a data window", plan.prevs[0].span, "for example E#length(2)")


def _check_kept_events(problems: Problems, select: ast.Select, plan: Plan, *, is_epl: bool) -> None:
    """Snapshots and joins read events that a window keeps."""
    snapshot = plan.output is not None and plan.output.mode == "snapshot"
    has_groups = plan.grouping_sets or (plan.aggregates and plan.row_kind in ("aggregate", "group"))
    keeps_rows = has_groups or any(source.pattern or source.keeps for source in plan.sources)
    if snapshot and not keeps_rows:
        message = "output snapshot of rows needs a window in FROM: without one there is no row to show"
        hint = "for example E#lastevent; output last every … shows the newest row of each interval"
        problems.error("B606", message, _at(select.output, select.span), hint)
    bare = [not (source.keeps or source.unidirectional) for source in plan.sources]
    if plan.joins and any(bare):
        hint = "for example E#length(5) as e" if is_epl else "for example GROUP BY TUMBLINGWINDOW(ss, 10)"
        message = "each joined stream needs a window, or is unidirectional"
        problems.error("B527", message, select.sources[bare.index(True)].span, hint)
    _check_several_unidirectional(problems, select)


def _check_several_unidirectional(problems: Problems, select: ast.Select) -> None:
    """Streams that keep nothing never meet: an outer join alone gives rows of several of them."""
    driving = [
        source for source in select.sources if isinstance(source, ast.StreamSource) and source.unidirectional
    ]
    all_full = len(driving) == len(select.sources) and all(join.kind == "full" for join in select.joins)
    if len(driving) > 1 and not all_full:
        message = "several unidirectional streams give rows in a full outer join of nothing else only"
        problems.error("B544", message, driving[1].span, "leave the word out, and keep rows: #length(5)")


def _at(node: ast.Node | None, otherwise: Span) -> Span:
    return otherwise if node is None else node.span

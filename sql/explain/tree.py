"""`explain`: a plan as a tree of the algebra. Results are at the top; events come in at the bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sql.aggregates.base import Removal
from sql.algebra.sample.windows.group_entry import leaves_at_once
from sql.algebra.windows.catalog import WINDOWS
from sql.codegen.functions import DATA_ERRORS, FunctionSet
from sql.compiler.answer import indexed_column
from sql.costs import Cost, Extra, Growth, WindowCost
from sql.explain import context_nodes, pattern_tree, relation_nodes, words
from sql.explain.composition import Composition, of_group_window, of_plan, of_source
from sql.explain.time_lengths import length
from sql.explain.tree_node import TreeNode, draw
from sql.plan.bound import AggregateCall
from sql.plan.clauses import GroupWindowPlan, OutputPlan, SourcePlan
from sql.plan.logical import Plan, SubqueryPlan

LEAVING = {
    Removal.NEVER: "values never leave one by one",
    Removal.FIFO: "values leave in the order they came",
    Removal.ANY: "values leave in any order",
}

ROW_KINDS = {
    "plain": "one row per event",
    "aggregate": "one row per update",
    "event": "one row per event, with the aggregates of all",
    "group": "one row per changed group",
    "group_event": "one row per event, with the aggregates of its group",
}


def explain(plan: Plan, measured: Sequence[tuple[str, str]] = ()) -> str:
    """The plan as text: the tree, then clock, state, cost, what was `measured`,
    and warnings, one per line."""
    tree, state, endless = _tree(plan), _state(plan), unbounded(plan)
    if plan.context is not None:
        tree = context_nodes.around(tree, plan.context, plan)
        state = context_nodes.state(plan.context, plan, state)
        endless = [*context_nodes.endless(plan.context), *endless]
    lines = draw(tree)
    facts = [("clock", _clock(plan)), *(("state", line) for line in state), ("cost", _cost(plan)), *measured]
    facts += [("unbounded", reason) for reason in endless]
    facts += [("warning", f"{problem.code} {problem.message}") for problem in plan.warnings]
    width = max(len(name) for name, _ in facts)
    last = ""
    for name, fact in facts:
        lines.append(f"{'' if name == last else name:<{width}}  {fact}")
        last = name
    return "\n".join(lines) + "\n"


# --- the tree -----------------------------------------------------------------------------------------------


def _tree(plan: Plan, part: SubqueryPlan | None = None) -> TreeNode:
    """Nodes in the order of work, each wrapped around its inputs. `part`: the subquery whose plan it is."""
    node = _from(plan, part)
    acting = relation_nodes.acting(plan, node)
    if acting is not None:
        return acting
    text = plan.text
    if plan.analytics:
        names = ", ".join(words.slice_of(text, call.span) or call.name for call in plan.analytics)
        node = _above_stream(node, TreeNode(f"analytic {names}", "state for the life of the rule"))
    if plan.where is not None:
        node = TreeNode(f"where {words.written(plan.where, text)}", "", [node])
    if plan.group_by:
        node = TreeNode(f"group by {words.groups(plan)}", "", [node])
    if plan.aggregates:
        node = TreeNode(f"Agg({_aggregates(plan)})", LEAVING[removal(plan)], [node])
    if plan.having is not None:
        node = TreeNode(f"having {words.written(plan.having, text)}", "", [node])
    rows = ROW_KINDS[plan.row_kind] if plan.sources else "one row"
    node = TreeNode(_select(plan), "" if plan.mode == "sample" else rows, [node])
    if plan.order_by:
        orders = ", ".join(words.argument(criterion, text) for criterion in plan.order_by)
        node = TreeNode(f"order by {orders}", "", [node])
    for name, bound in (("offset", plan.offset), ("limit", plan.limit)):
        if bound is not None:
            node = TreeNode(f"{name} {words.written(bound, text)}", "per output", [node])
    if plan.output is not None:
        node = TreeNode(_output(plan.output, text), f"output {plan.output.mode}", [node])
    if plan.insert is not None:
        node = TreeNode(f"insert into {plan.insert.stream}", "row by row", [node])
    return node


def _above_stream(node: TreeNode, stage: TreeNode) -> TreeNode:
    """Put a stage between the streams and the nodes that read them."""
    for index, feeding in enumerate(node.inputs):
        if not feeding.inputs:
            node.inputs[index] = replace(stage, inputs=[feeding])
        else:
            _above_stream(feeding, stage)
    return node if node.inputs else replace(stage, inputs=[node])


def _from(plan: Plan, part: SubqueryPlan | None) -> TreeNode:
    if plan.window is not None:
        return _sampled(plan, plan.window)
    sources = [_source(source, plan, part) for source in plan.sources]
    if not sources:
        return TreeNode("the partition itself", "when it starts" if plan.output is None else "when it ends")
    node = sources[0] if len(sources) == 1 else _product(plan, sources, "difference per change")
    for sub in plan.subqueries:
        read = "read at each row" if indexed_column(sub) is None else "one value looked up at each row"
        node.inputs.append(TreeNode("subquery", read, [_tree(sub.plan, sub)]))
    return node


def _sampled(plan: Plan, window: GroupWindowPlan) -> TreeNode:
    """A window in GROUP BY: one for all streams of FROM; their rows meet each other and
    tables at each sample."""
    streams = [_source(source, plan) for source in plan.sources if source.retained_rows is None]
    tables = [_source(source, plan) for source in plan.sources if source.retained_rows is not None]
    first, *others = streams
    if window.filter is not None:
        first, others = (
            TreeNode(f"filter {words.written(window.filter, plan.text)}", "before the window", streams),
            [],
        )
    node = first
    if not window.is_each_event:
        node = _stack(of_group_window(window, plan), words.slice_of(plan.text, window.span), first, *others)
    return _product(plan, [node, *tables], "at each sample") if plan.joins else node


def _product(plan: Plan, inputs: list[TreeNode], remark: str) -> TreeNode:
    parts = []
    for source, join in zip(plan.sources[1:], plan.joins, strict=False):
        on = "" if join.on is None else f" on {words.written(join.on, plan.text)}"
        parts.append(f"{join.kind} {source.alias}{on}")
    driver = next((source.alias for source in plan.sources if source.unidirectional), None)
    return TreeNode(f"Product({'; '.join(parts)})", f"driven by {driver} alone" if driver else remark, inputs)


def _source(source: SourcePlan, plan: Plan, part: SubqueryPlan | None = None) -> TreeNode:
    if source.relation is not None:
        return _filtered(relation_nodes.source(plan, source, part), source, plan)
    columns = plan.columns(source.stream)
    derived = {name for window in source.windows for name in WINDOWS[window.name].columns}
    reads = "the whole message" if columns is None else ", ".join(sorted(columns - derived)) or "no columns"
    alias = "" if source.alias == source.stream else f" as {source.alias}"
    if source.retained_rows is not None:
        return TreeNode(
            f"table {source.stream}{alias}", f"keeps {source.retained_rows:,} rows, reads {reads}"
        )
    asks = "".join(f", asking {lookup.table} by {' and '.join(lookup.columns)}" for lookup in plan.lookups)
    asked = asks if source is plan.sources[0] else ""
    node = TreeNode(f"stream {source.stream}{alias}{asked}", f"reads {reads}")
    if source.pattern is not None:
        node = pattern_tree.tree(source.pattern, plan.reads)
    node = _filtered(node, source, plan)
    if plan.window is not None or (not source.windows and source.lot is None):
        return node
    spelt = "".join(f"#{words.slice_of(plan.text, window.span).lstrip('#.')}" for window in source.windows)
    return _stack(of_source(source, plan), spelt, node)


def _filtered(node: TreeNode, source: SourcePlan, plan: Plan) -> TreeNode:
    """A source behind its filter in parentheses, if it has one."""
    if source.filter is None:
        return node
    return TreeNode(f"filter {words.written(source.filter, plan.text)}", "before the window", [node])


def _stack(composition: Composition, spelt: str, *inputs: TreeNode) -> TreeNode:
    """The stages of a window, the first one lowest; its source text stands beside the last."""
    below = list(inputs)
    for index, stage in enumerate(composition.stages):
        below = [TreeNode(stage, spelt if index == len(composition.stages) - 1 else "", below)]
    return below[0]


def _select(plan: Plan) -> str:
    text = plan.text
    items = []
    for item in plan.items:
        if item.name in plan.states:
            continue
        shown = "*" if item.name is None else words.written(item.value, text)
        named = item.name is not None and not item.name.startswith("$") and item.name != shown
        name = f" as {item.name}" if named else ""
        but = f" except {', '.join(item.excluded)}" if item.excluded else ""
        items.append(f"{shown}{but}{name}" + (" invisible" if item.invisible else ""))
    shown = plan.posts or plan.selector
    selector = "" if shown == "istream" else f"{shown} "
    return f"select {'distinct ' if plan.distinct else ''}{selector}{', '.join(items)}"


def _aggregates(plan: Plan) -> str:
    leaving = removal(plan)
    return ", ".join(f"{_call(call, plan.text)} {cost_of(call, leaving)}" for call in plan.aggregates)


def _call(call: AggregateCall, text: str) -> str:
    return words.slice_of(text, call.span) or f"{call.definition.name}({words.several(call.args, text)})"


def _output(output: OutputPlan, text: str) -> str:
    """An output limit is a gate on the rows, or a sample at them."""
    trigger = "with each update"
    if output.every is not None:
        trigger = f"every {words.period(output.every, text)}"
    elif output.every_events is not None:
        trigger = f"every {words.written(output.every_events, text)} events"
    elif output.at:
        trigger = f"at ({', '.join(part.text for part in output.at)})"
    elif output.when is not None:
        trigger = f"when {words.written(output.when, text)}"
    if output.terminated is not None:
        alone = not (output.every or output.every_events or output.at or output.when)
        condition = output.terminated.condition
        only = "" if condition is None else f" and {words.written(condition, text)}"
        trigger = f"{'' if alone else f'{trigger} and '}when terminated{only}"
    if output.after is not None:
        trigger += f", after {words.period(output.after, text)}"
    if output.after_events is not None:
        trigger += f", after {words.written(output.after_events, text)} events"
    return f"{'Sample' if output.mode == 'snapshot' else 'Gate'}({trigger})"


# --- the facts ----------------------------------------------------------------------------------------------


def removal(plan: Plan) -> Removal:
    """The order in which values leave the aggregates of a plan, which decides their structures."""
    if plan.joins:
        return Removal.ANY
    if plan.window is not None:
        return Removal.NEVER if leaves_at_once(plan.window) else Removal.FIFO
    if not plan.sources or plan.sources[0].relation is not None:
        return Removal.ANY
    from sql.algebra.derived.statistics import NoOwner
    from sql.algebra.window_builder import WindowBuilder
    from sql.codegen.support import Warnings
    from sql.explain.stand_ins import variables_of
    from sql.functions.definition import Context

    source, context = plan.sources[0], Context(zone=plan.options.zone_info())
    try:
        functions = FunctionSet(variables_of(plan), context, Warnings(), joined=source.rows_are_tuples)
        builder = WindowBuilder(source, plan.options, functions)
        return builder.build(0, NoOwner(), lambda: 0).departure
    except DATA_ERRORS:
        return Removal.ANY


def _clock(plan: Plan) -> str:
    options = plan.options
    if plan.timestamp is None:
        return f"processing time, zone {options.zone}"
    parts = [
        f"event time from {plan.timestamp}",
        f"watermark {length(options.late_tolerance_ms)} behind",
    ]
    if options.idle_timeout_ms is not None:
        parts.append(f"a silent stream is passed over after {length(options.idle_timeout_ms)}")
    if options.max_future_ms is not None:
        parts.append(f"refused if more than {length(options.max_future_ms)} ahead")
    return ", ".join([*parts, f"zone {options.zone}"])


def _state(plan: Plan) -> list[str]:
    held = [part for composition in of_plan(plan) for part in composition.state]
    if any(source.pattern is not None for source in plan.sources):
        held.append(f"{plan.options.max_pattern_partials:,} partial matches")
    held += [f"{s.retained_rows:,} rows of {s.stream}" for s in plan.sources if s.retained_rows is not None]
    lines = [f"at most {', '.join(held)}"] if held else []
    if plan.group_by:
        lines.append(
            f"one row of aggregates per {words.groups(plan)}, at most {plan.options.max_groups:,} groups"
        )
    if plan.analytics:
        lines.append("the last values of the analytic functions")
    for sub in plan.subqueries:
        lines += [f"subquery: {line}" for line in _state(sub.plan)]
    return lines or ["none"]


def cost_of(call: AggregateCall, leaving: Removal) -> Cost:
    """The cost of an aggregate if values leave in this order."""
    return call.definition.cost.where(
        values_leave=leaving is not Removal.NEVER, in_any_order=leaving is Removal.ANY
    )


def _cost(plan: Plan) -> str:
    costs = [cost for composition in of_plan(plan) for cost in composition.costs]
    leaving = removal(plan) if plan.aggregates else Removal.NEVER
    growths = [str(WindowCost(cost.event)) for cost in costs if cost.event is not None]
    growths += [str(cost_of(call, leaving)) for call in plan.aggregates]
    besides = list(dict.fromkeys(extra for cost in costs for extra in cost.besides))
    terms = _without_constant(growths) + [extra.value for extra in besides if extra is not Extra.ROWS]
    if plan.joins:
        terms.append("matches of the join")
    if any(source.pattern is not None for source in plan.sources):
        terms.append("partial matches that wait for it")
    if plan.context is not None:
        terms += context_nodes.cost(plan.context, plan)
    samples = f"; per sample {_rows_of_a_sample(plan)}" if Extra.ROWS in besides else ""
    sets = f" in each of {len(plan.grouping_sets)} grouping sets" if plan.grouping_sets else ""
    return f"per event {' + '.join(terms or [Growth.CONSTANT.value])}{sets}{samples}"


def _without_constant(growths: list[str]) -> list[str]:
    """Each growth once; a constant one is left out beside others."""
    once = list(dict.fromkeys(growths))
    return once if len(once) < 2 else [growth for growth in once if growth != Growth.CONSTANT.value]


def _rows_of_a_sample(plan: Plan) -> str:
    if plan.group_by:
        return "a row for each group"
    return "one row" if plan.aggregates and not plan.judges_windows else "every row of the window"


def unbounded(plan: Plan) -> list[str]:
    """The reasons why the state of the rule has no bound, a sentence each; empty if it has one."""
    found = [reason for composition in of_plan(plan) for reason in composition.unbounded]
    for sub in plan.subqueries:
        found += unbounded(sub.plan)
    return list(dict.fromkeys(found))

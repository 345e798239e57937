"""The composition of a plan's windows, with their actual parameters, and the bounds of their state."""

from __future__ import annotations

from dataclasses import dataclass, field

from sql.algebra.sample.windows.group_entry import GROUP_ENTRIES, LENGTHS, GroupParameter
from sql.algebra.windows.catalog import WINDOWS
from sql.algebra.windows.facts import Stage, WindowFacts, filled
from sql.algebra.windows.lots import CURRENT, EVERY_COUNT, EVERY_PERIOD, LOT_ENTRIES, PARTITION, UNIQUE
from sql.costs import WindowCost
from sql.explain import words
from sql.explain.time_lengths import length
from sql.plan.bound import Bound
from sql.plan.clauses import GroupWindowPlan, LotPlan, LotWindowPlan, SourcePlan, WindowPlan
from sql.plan.logical import Plan
from sql.record import replace

SYMBOLS = {
    "size": "n",
    "period": "d",
    "keys": "k",
    "timestamp": "ts",
    "predicate": "predicate",
    "criteria": "criteria",
}
"""The placeholders for parameters in the compositions of the catalog."""


@dataclass(slots=True)
class Composition:
    """A window in words.

    stages     operators in the order in which events pass them
    state      the largest state
    costs      of its windows
    unbounded  the reasons why the state has no bound
    """

    stages: list[str] = field(default_factory=list)
    state: list[str] = field(default_factory=list)
    costs: list[WindowCost] = field(default_factory=list)
    unbounded: list[str] = field(default_factory=list)


def of_plan(plan: Plan) -> list[Composition]:
    """The windows of FROM, and that of GROUP BY."""
    found = [of_source(source, plan) for source in plan.sources if source.windows or source.lot is not None]
    if plan.window is not None and not plan.window.is_each_event:
        found.append(of_group_window(plan.window, plan))
    return found


def of_source(source: SourcePlan, plan: Plan) -> Composition:
    """The windows of one source of FROM."""
    text = plan.text
    if source.lot is not None:
        return _of_lot(source.lot, plan)
    out = Composition()
    windows = list(source.windows)
    if windows and windows[0].name == "groupwin":
        _group(out, windows, source, text)
        return out
    _stages(out, windows, source.union, text)
    return out


def _group(out: Composition, windows: list[WindowPlan], source: SourcePlan, text: str) -> None:
    end = next((i for i, window in enumerate(windows) if window.name == "merge"), len(windows))
    inner = Composition()
    _stages(inner, windows[1:end], source.union, text)
    keys = words.argument(windows[0].arguments["keys"], text)
    out.stages.append(f"Key({keys}, {'; '.join(inner.stages)})")
    out.state += [f"{part} per key" for part in inner.state]
    spec = WINDOWS["groupwin"]
    out.costs += [*inner.costs, spec.cost]
    out.unbounded += inner.unbounded
    if source.reclaim_ms is None:
        out.unbounded.append(f"{spec.unbounded}; @Hint('reclaim_group_aged=…') drops idle ones")
    _stages(out, windows[end + 1 :], False, text)


def _stages(out: Composition, windows: list[WindowPlan], union: bool, text: str) -> None:
    """Data windows as one intersection or union, then the derived-value window."""
    members: list[list[str]] = []
    derived: list[str] = []
    for window in windows:
        spec = WINDOWS[window.name]
        if spec.role == "derived":
            derived += [_derived(stage, window, text) for stage in spec.composition]
        else:
            values = _values(window, text)
            members.append([_chosen(stage, window, text).written(values) for stage in spec.composition])
            out.state.append(filled(spec.state, values))
            out.costs.append(spec.cost)
            if spec.unbounded is not None:
                out.unbounded.append(spec.unbounded)
    if len(members) > 1:
        out.stages.append(
            f"{'Union' if union else 'Intersect'}({', '.join(_one(member) for member in members)})"
        )
    elif members:
        out.stages += members[0]
    out.stages += derived


def _one(stages: list[str]) -> str:
    return f"[{'; '.join(stages)}]" if len(stages) > 1 else stages[0]


def _derived(stage: Stage, window: WindowPlan, text: str) -> str:
    values = (bound for name, bound in window.arguments.items() if name != "extras")
    return replace(stage, policy=f"{window.name}({words.several(values, text)})").written({})


def _values(window: WindowPlan, text: str) -> dict[str, str]:
    return {
        SYMBOLS[name]: words.argument(value, text)
        for name, value in window.arguments.items()
        if name in SYMBOLS and value is not None
    }


def _chosen(stage: Stage, window: WindowPlan, text: str) -> Stage:
    """A stage with the origin of this window, and with the effect of its flags."""
    if not stage.origin:
        return stage
    reference, flags = window.arguments.get("reference"), window.arguments.get("flags") or frozenset()
    origin = "start" if "START_EAGER" in flags else "first event"
    if reference is not None:
        origin = words.argument(reference, text)
    return replace(stage, origin=origin, note="also when empty" if flags else stage.note)


def _of_lot(lot: LotPlan, plan: Plan) -> Composition:
    out, text = Composition(costs=[CURRENT.cost]), plan.text
    stages = [_lot_windows(out, lot, text)]
    if lot.every_period is not None:
        origin = plan.options.align.replace("_", " ")
        values = {"p": words.period(lot.every_period, text)}
        stages += [replace(stage, origin=origin).written(values) for stage in EVERY_PERIOD.composition]
        out.state.append(filled(EVERY_PERIOD.state, values))
    if lot.every_count is not None:
        values = {"c": words.written(lot.every_count, text)}
        stages += _written(EVERY_COUNT, values)
        out.state.append(filled(EVERY_COUNT.state, values))
    if lot.unique:
        stages += _written(UNIQUE, {"k": words.several(lot.unique, text)})
    if lot.partition_by:
        out.stages = [f"Key({words.several(lot.partition_by, text)}, {'; '.join(stages)})"]
        out.state = [f"{part} per key" for part in out.state]
        assert PARTITION.unbounded is not None
        out.unbounded.append(PARTITION.unbounded)
    else:
        out.stages = stages
    return out


def _lot_windows(out: Composition, lot: LotPlan, text: str) -> str:
    """The windows of a stream query as one stage: several are an intersection."""
    members: list[str] = []
    held = ""
    for window in lot.windows:
        entry = LOT_ENTRIES[window.name]
        values = _lot_values(window, text)
        members += _written(entry, values)
        held = filled(entry.state, values)
        if entry.unbounded is not None:
            out.unbounded.append(entry.unbounded)
    out.state.append(held or CURRENT.state)
    if len(members) > 1:
        return f"Intersect({', '.join(members)})"
    return "; ".join(members or _written(CURRENT, {}))


def _written(entry: WindowFacts, values: dict[str, str]) -> list[str]:
    return [stage.written(values) for stage in entry.composition]


def _lot_values(window: LotWindowPlan, text: str) -> dict[str, str]:
    if window.length is not None:
        return {"d": words.period(window.length, text)}
    return {} if window.count is None else {"n": words.written(window.count, text)}


def of_group_window(window: GroupWindowPlan, plan: Plan) -> Composition:
    """A window in GROUP BY."""
    entry, text = GROUP_ENTRIES[window.kind], plan.text
    values = {
        parameter.symbol: _group_value(parameter, getattr(window, parameter.field), text)
        for parameter in entry.parameters
    }
    origin = _origin(window, plan)
    stages = [replace(stage, origin=stage.origin and origin).written(values) for stage in entry.composition]
    if entry.is_triggered:
        stages = _sliding(window, text)
    out = Composition(stages, [filled(entry.state, values)], [entry.cost])
    if entry.is_triggered:
        out.state = [f"the events of {length(window.length_ms + window.delay_ms)}"]
    if entry.unbounded is not None:
        out.unbounded.append(entry.unbounded)
    if window.partition_by:
        out.stages = [f"Key({words.several(window.partition_by, text)}, {'; '.join(out.stages)})"]
        out.state = [f"{part} per key" for part in out.state]
    return out


def _group_value(parameter: GroupParameter, value: int | Bound | None, text: str) -> str:
    if value is None:
        return parameter.default
    if isinstance(value, Bound):
        return words.written(value, text)
    return length(value) if parameter.field in LENGTHS else str(value)


def _sliding(window: GroupWindowPlan, text: str) -> list[str]:
    where = "" if window.when is None else f" where {words.written(window.when, text)}"
    delay = f", {length(window.delay_ms)} later" if window.delay_ms else ""
    held = length(window.length_ms + window.delay_ms)
    return [f"Retain(deadline arrival + {held})", f"Sample(at each event{where}{delay})"]


def _origin(window: GroupWindowPlan, plan: Plan) -> str:
    """The origin of a window's grid (design: Grid)."""
    step = window.hop_ms or window.length_ms or 1
    day = 86_400_000
    return f"midnight {plan.options.zone}" if day % step == 0 or step % day == 0 else "epoch"

"""What a plan's windows are made of, with their actual parameters, and how much they may hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from sql.algebra.sample.windows.group_entry import LENGTHS, GroupParameter, group_window
from sql.algebra.windows import catalog
from sql.algebra.windows.lots import CURRENT, EVERY_COUNT, EVERY_PERIOD, PARTITION, UNIQUE, lot_window
from sql.explain import words
from sql.plan.bound import Bound
from sql.plan.logical import GroupWindowPlan, LotPlan, LotWindowPlan, Plan, SourcePlan, WindowPlan

SYMBOLS = {
    "size": "n",
    "period": "d",
    "keys": "k",
    "timestamp": "ts",
    "predicate": "predicate",
    "criteria": "criteria",
}
"""The letters that compositions in the catalog use for parameters."""


@dataclass(slots=True)
class Composition:
    """A window in words.

    stages     operators in the order events meet them
    state      what is held at most
    cost       per event
    unbounded  why there is no bound on what is held
    """

    stages: list[str] = field(default_factory=list)
    state: list[str] = field(default_factory=list)
    cost: list[str] = field(default_factory=list)
    unbounded: list[str] = field(default_factory=list)


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
    out.cost += [*inner.cost, "hash of the key"]
    out.unbounded += inner.unbounded
    if source.reclaim_ms is None:
        spec = catalog.lookup("groupwin")
        assert spec is not None
        out.unbounded.append(f"{spec.unbounded}; @Hint('reclaim_group_aged=…') drops idle ones")
    _stages(out, windows[end + 1 :], False, text)


def _stages(out: Composition, windows: list[WindowPlan], union: bool, text: str) -> None:
    """Data windows as one intersection or union, then the derived-value window."""
    members: list[str] = []
    derived: list[str] = []
    for window in windows:
        spec = catalog.lookup(window.name)
        assert spec is not None
        values = _values(window, text)
        composition = words.fill(_chosen_origin(spec.composition, window, text), values)
        if spec.role == "derived":
            derived.append(_derived(window, text))
        else:
            members.append(composition)
            out.state.append(words.fill(spec.state, values))
            out.cost.append(spec.cost)
            if spec.unbounded is not None:
                out.unbounded.append(spec.unbounded)
    if len(members) > 1:
        out.stages.append(f"{'Join' if union else 'Meet'}({', '.join(_one(member) for member in members)})")
    elif members:
        out.stages += members[0].split("; ")
    out.stages += derived


def _one(composition: str) -> str:
    return f"[{composition}]" if "; " in composition else composition


def _derived(window: WindowPlan, text: str) -> str:
    values = (bound for name, bound in window.arguments.items() if name != "extras")
    return f"Agg {window.name}({words.several(values, text)}), posting the changed row"


def _values(window: WindowPlan, text: str) -> dict[str, str]:
    return {
        SYMBOLS[name]: words.argument(value, text)
        for name, value in window.arguments.items()
        if name in SYMBOLS and value is not None
    }


def _chosen_origin(composition: str, window: WindowPlan, text: str) -> str:
    """Of the origins a batch may have, the one this window has; and its flags."""
    reference, flags = window.arguments.get("reference"), window.arguments.get("flags") or frozenset()
    if reference is not None:
        origin = f"origin {words.argument(reference, text)}"
    elif "START_EAGER" in flags:
        origin = "origin start"
    else:
        origin = "origin first event"
    chosen = composition.replace("origin first event | reference | start", origin)
    return chosen.replace("); Retain", ", also when empty); Retain") if flags else chosen


def _of_lot(lot: LotPlan, plan: Plan) -> Composition:
    out, text = Composition(cost=["O(1)"]), plan.text
    stages = [_lot_windows(out, lot, text)]
    if lot.every_period is not None:
        origin = f"origin {plan.options.align.replace('_', ' ')}"
        values = {"p": words.period(lot.every_period, text)}
        stages.append(words.fill(EVERY_PERIOD.composition, values).replace("origin creation", origin))
        out.state.append(words.fill(EVERY_PERIOD.state, values))
    if lot.every_count is not None:
        values = {"c": words.written(lot.every_count, text)}
        stages.append(words.fill(EVERY_COUNT.composition, values))
        out.state.append(words.fill(EVERY_COUNT.state, values))
    if lot.unique:
        stages.append(words.fill(UNIQUE.composition, {"k": words.several(lot.unique, text)}))
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
        entry = lot_window(window.name)
        values = _lot_values(window, text)
        members.append(words.fill(entry.composition, values))
        held = words.fill(entry.state, values)
        if entry.unbounded is not None:
            out.unbounded.append(entry.unbounded)
    out.state.append(held or CURRENT.state)
    if len(members) > 1:
        return f"Meet({', '.join(members)})"
    return members[0] if members else CURRENT.composition


def _lot_values(window: LotWindowPlan, text: str) -> dict[str, str]:
    if window.length is not None:
        return {"d": words.period(window.length, text)}
    return {} if window.count is None else {"n": words.written(window.count, text)}


def of_group_window(window: GroupWindowPlan, plan: Plan) -> Composition:
    """A window in GROUP BY."""
    entry, text = group_window(window.kind), plan.text
    values = {
        parameter.symbol: _group_value(parameter, getattr(window, parameter.field), text)
        for parameter in entry.parameters
    }
    composition = words.fill(entry.composition, values).replace("local day | epoch", _origin(window, plan))
    if entry.is_triggered:
        composition = _sliding(window, text)
    out = Composition(composition.split("; "), [words.fill(entry.state, values)], [entry.cost])
    if entry.is_triggered:
        out.state = [f"the events of {words.length(window.length_ms + window.delay_ms)}"]
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
    return words.length(value) if parameter.field in LENGTHS else str(value)


def _sliding(window: GroupWindowPlan, text: str) -> str:
    where = "" if window.when is None else f" where {words.written(window.when, text)}"
    delay = f", {words.length(window.delay_ms)} later" if window.delay_ms else ""
    held = words.length(window.length_ms + window.delay_ms)
    return f"Retain(deadline arrival + {held}); Sample(at each event{where}{delay})"


def _origin(window: GroupWindowPlan, plan: Plan) -> str:
    """Where the grid of a window counts from (design: Grid)."""
    step = window.hop_ms or window.length_ms or 1
    day = 86_400_000
    return f"midnight {plan.options.zone}" if day % step == 0 or step % day == 0 else "epoch"

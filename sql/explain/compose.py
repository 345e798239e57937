"""What a plan's windows are made of, with their actual parameters, and how much they may hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from sql.algebra.windows import catalog
from sql.algebra.windows.forms import LOTS, SAMPLED
from sql.explain import words
from sql.plan.logical import GroupWindowPlan, LotPlan, Plan, SourcePlan, WindowPlan

SYMBOLS = {
    "size": "n",
    "period": "d",
    "keys": "k",
    "timestamp": "ts",
    "predicate": "predicate",
    "criteria": "criteria",
}
"""The letters that compositions in the catalog use for parameters."""

UNBOUNDED = {
    "keepall": "keepall keeps every event",
    "unique": "unique keeps an event for every key ever seen",
    "firstunique": "firstunique keeps an event for every key ever seen",
    "groupwin": "groupwin keeps a window for every key ever seen",
    "timetolive": "timetolive keeps events as long as their own time stamps say",
}
"""Windows whose size depends on the data alone, with the sentence that says so."""


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
        out.unbounded.append(f"{UNBOUNDED['groupwin']}; @Hint('reclaim_group_aged=…') drops idle ones")
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
            if window.name in UNBOUNDED:
                out.unbounded.append(UNBOUNDED[window.name])
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
    values: dict[str, str] = {}
    if lot.within is not None:
        values["d"] = words.period(lot.within, text)
    if lot.retain is not None:
        values["n"] = words.written(lot.retain, text)
    name = (
        "retain all"
        if lot.retain_all
        else " ".join(word for word, key in (("within", "d"), ("retain", "n")) if key in values)
    )
    base = LOTS[name or "current"]
    stages = [words.fill(base.composition, values)]
    out.state.append(words.fill(base.state, values))
    if lot.every_period is not None:
        gate = _part("every period", p=words.period(lot.every_period, text))
        stages.append(gate.replace("origin creation", f"origin {plan.options.align.replace('_', ' ')}"))
        out.state.append(f"the changes of {words.period(lot.every_period, text)}")
    if lot.every_count is not None:
        stages.append(_part("every count", c=words.written(lot.every_count, text)))
        out.state.append(f"the changes of {words.written(lot.every_count, text)} items")
    if lot.unique:
        stages.append(_part("unique", k=words.several(lot.unique, text)))
    if lot.partition_by:
        keys = words.several(lot.partition_by, text)
        out.stages.append(f"Key({keys}, {'; '.join(stages)})")
        out.state = [f"{part} per key" for part in out.state]
        out.unbounded.append("partition by keeps a window for every key ever seen")
    else:
        out.stages = stages
    if lot.retain_all:
        out.unbounded.append("retain all keeps every item")
    return out


def _part(name: str, **values: str) -> str:
    return words.fill(LOTS[name].composition.removeprefix("…; "), values)


def of_group_window(window: GroupWindowPlan, plan: Plan) -> Composition:
    """An eKuiper window."""
    form, text = SAMPLED[window.kind], plan.text
    first, period = ("m", "t") if window.kind == "session" else ("d", "p")
    values = {
        first: words.length(window.length_ms),
        period: words.length(window.timeout_ms if window.kind == "session" else window.hop_ms),
        "n": str(window.size),
        "c": str(window.interval),
        "begin": "" if window.begin is None else words.written(window.begin, text),
        "emit": "the next begin" if window.emit is None else words.written(window.emit, text),
    }
    composition = words.fill(form.composition, values).replace("local day | epoch", _origin(window, plan))
    if window.kind == "sliding":
        composition = _sliding(window, text)
    out = Composition(composition.split("; "), [words.fill(form.state, values)], [form.cost])
    if window.kind == "sliding":
        out.state = [f"the events of {words.length(window.length_ms + window.delay_ms)}"]
    if window.kind == "state":
        out.unbounded.append("a state window keeps everything until its end condition holds")
    if window.partition_by:
        out.stages = [f"Key({words.several(window.partition_by, text)}, {'; '.join(out.stages)})"]
        out.state = [f"{part} per key" for part in out.state]
    return out


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

"""Check a `cloud` action against the query of its rule, and derive from the plan what the action leaves out.

The declaration of the action is checked against the plan, so that one that cannot merge is a positioned error
of `penstock check`, not a wrong number in the cloud.
"""

from __future__ import annotations

from collections.abc import Iterator

from cloud_sync.binding.states import (
    PERCENTILES,
    aggregate_of,
    companion,
    counts_distinct,
    state_name,
    timed,
    with_states,
)
from cloud_sync.columns import schema_of
from cloud_sync.declaration import Average, CloudSettings, How, Kind, Merge, Sketched, Spread, Timed
from cloud_sync.fleet_windows import FleetWindow
from cloud_sync.moments import SAMPLE
from cloud_sync.sketches import SKETCHES
from rules.model import ActionProblem
from sql import Plan
from sql.algebra.sample.windows.group_entry import leaves_at_once
from sql.algebra.windows.catalog import WINDOWS
from sql.errors import did_you_mean
from sql.plan.bound import AggregateCall, Bound, Slot
from sql.plan.clauses import ItemPlan
from sql.types import Type

BY_AGGREGATE: dict[str, Merge] = {
    "count": "count",
    "lot_count": "count",
    "sum": "sum",
    "lot_sum": "sum",
    "min": "min",
    "max": "max",
    "theta_sketch": "theta",
    "kll_sketch": "kll",
    "top_k_sketch": "top_k",
}
"""The merge of an aggregate's results."""

TIMED_TYPES: dict[Type, Kind] = {
    Type.INTEGER: "int",
    Type.FLOAT: "float",
    Type.NUMBER: "float",
    Type.STRING: "text",
}
"""The types of first and last values; those of other columns have to be declared."""


def widen(settings: CloudSettings, plan: Plan) -> Plan:
    """The plan with the state columns from which its columns merge."""
    if settings.merge is not None or settings.replaces_columns:
        return plan
    return with_states(plan, [*_Binding(settings, plan).items])


def bind(settings: CloudSettings, plan: Plan) -> tuple[CloudSettings, list[ActionProblem]]:
    """The settings, completed from the plan, and the problems found."""
    settings = settings.of_rule(plan.text)
    if settings.replaces_columns:
        missing = [name for name in ("keys", "merge") if getattr(settings, name) is None]
        reason = "'dataTemplate' and 'dataField' replace the columns of the SELECT; name the new ones"
        problems = [ActionProblem(f"'{name}' is missing: {reason}") for name in missing]
        return settings.described(schema_of(settings, plan)), problems
    binding = _Binding(settings, plan)
    problems = [*binding.window_problems(), *binding.column_problems()]
    if problems:
        return settings, problems
    bound, problems = binding.filled()
    return bound.described(schema_of(bound, plan)), [*problems, *_Binding(bound, plan).merge_problems()]


class _Binding:
    """The declaration of one action together with its plan."""

    def __init__(self, settings: CloudSettings, plan: Plan) -> None:
        self.settings = settings
        self.plan = plan
        self.items = {item.name: item for item in plan.items if item.name is not None and self._is_sent(item)}
        self.is_open = any(item.name is None for item in plan.items) or bool(plan.spreads)
        """True if the messages bring columns that the plan does not know."""

    def _is_sent(self, item: ItemPlan) -> bool:
        settings = self.settings
        if item.invisible or item.name in (*settings.exclude_fields, *settings.secret):
            return False
        return settings.fields is None or item.name in (*settings.fields, *self.plan.states)

    def _bound_of_window(self, which: str) -> str | None:
        """The column with the window's start or end."""
        for name, item in self.items.items():
            if isinstance(item.value, Slot) and (item.value.kind, item.value.key) == ("window", which):
                return name
        return None

    # --- windows --------------------------------------------------------------------------------------------

    def window_problems(self) -> Iterator[ActionProblem]:
        """Problems with rows that overlap, cross the border of a fleet window, or lack the window's start."""
        plan, settings = self.plan, self.settings
        if plan.selector != "istream":
            yield ActionProblem(
                "rows of the remove stream would count like the others",
                hint=f"the query says {plan.selector}; send its insert stream only",
            )
        has_start = (
            self._bound_of_window("start") is not None or settings.window_start in self.items or self.is_open
        )
        if settings.restates and not has_start:
            yield ActionProblem(
                "the SELECT lacks the start of its window, by which the cloud knows what is stated anew",
                ("restates",),
                "add window_start() AS window_start, or name the column in 'windowStart'",
            )
            return
        kind = self._overlapping()
        if kind and self._adds():
            yield ActionProblem(
                f"the rows of {kind} overlap, so their counts and sums would add up to more than there was",
                hint="use a tumbling, session, count or batch window",
            )
        window = plan.window
        if window is None or window.kind not in ("tumbling", "session"):
            return
        finest = settings.window[0]
        zone = plan.options.zone
        if window.kind == "tumbling" and not finest.is_made_of(window.length_ms, settings.zone, zone):
            length = FleetWindow(window.length_ms).label
            yield ActionProblem(
                f"fleet windows of {finest.label} ({settings.zone}) do not consist of "
                f"whole windows of {length} ({zone})",
                ("window",),
                "a row across the border would count on one side; choose a multiple, and the rule's 'zone'",
            )
        if not has_start:
            yield ActionProblem(
                "the SELECT lacks the start of its window, "
                "so a row would count in the fleet window in which it ends",
                hint="add window_start() AS window_start, window_end() AS window_end",
            )

    def _overlapping(self) -> str | None:
        """The kind of window whose rows share events; None where each event is in one row."""
        plan = self.plan
        if plan.window is not None and not leaves_at_once(plan.window):
            return f"{plan.window.kind} windows"
        if plan.mode == "lots":
            lots = [source.lot for source in plan.sources if source.lot is not None]
            names = {window.name for lot in lots for window in lot.windows}
            return "a stream query's windows" if names - {"retain"} else None
        if plan.mode == "sample" or not plan.aggregates:
            return None
        if self.settings.restates:
            return None
        roles = [WINDOWS[window.name].role for source in plan.sources for window in source.windows]
        return None if "batch" in roles else "a query that tells its aggregates with every event"

    def _adds(self) -> bool:
        """True if a column is added up; false if only extremes merge."""
        if self.settings.merge is None:
            return bool(self.plan.aggregates)
        return any(merge not in ("min", "max") for merge in self.settings.merge.values())

    # --- columns --------------------------------------------------------------------------------------------

    def column_problems(self) -> Iterator[ActionProblem]:
        """Columns that the declaration names and the SELECT lacks."""
        if self.is_open:
            return
        settings = self.settings
        for number, name in enumerate(settings.keys or ()):
            yield from self._missing(name, ("keys", number))
        for number, name in enumerate(settings.hashed):
            yield from self._missing(name, ("hashed", number))
        for name, merge in (settings.merge or {}).items():
            if isinstance(merge, Average | Spread):
                yield from self._missing(merge.sum, ("merge", name, "sum"))
                yield from self._missing(merge.count, ("merge", name, "count"))
            elif isinstance(merge, Sketched):
                yield from self._missing(merge.sketch, ("merge", name, "sketch"))
            elif isinstance(merge, Timed):
                yield from self._missing(merge.at, ("merge", name, "at"))
            else:
                yield from self._missing(name, ("merge", name))
        for field, key in (("window_start", "windowStart"), ("window_end", "windowEnd")):
            if field in settings.model_fields_set:
                yield from self._missing(getattr(settings, field), (key,))

    def _missing(self, name: str, path: tuple[str | int, ...]) -> Iterator[ActionProblem]:
        if name not in self.items:
            hint = did_you_mean(name, self.items) or f"it has {', '.join(self.items) or 'none'}"
            yield ActionProblem(f"the SELECT sends no column '{name}'", path, hint)

    def merge_problems(self) -> Iterator[ActionProblem]:
        """Merges that would give a wrong number for the values of their column."""
        for name, merge in (self.settings.merge or {}).items():
            if isinstance(merge, Average | Spread):
                yield from self._unfit(merge.sum, "sum", ("merge", name, "sum"))
                yield from self._unfit(merge.count, "count", ("merge", name, "count"))
            elif isinstance(merge, Timed):
                yield from self._untyped(name)
            elif not isinstance(merge, Sketched):
                yield from self._unfit(name, merge, ("merge", name))

    def _untyped(self, name: str) -> Iterator[ActionProblem]:
        """A first or last value of a type that the fleet's table does not have, or that is not known."""
        item = self.items.get(name)
        if name not in self.settings.types:
            shown = item.value.type.value if item is not None else Type.ANY.value
            hint = (
                f"write types: {{{name}: text}}, int or float; or leave it out with excludeFields: [{name}]"
            )
            yield ActionProblem(f"column '{name}' holds {shown}: the cloud needs a number or text", (), hint)

    def _unfit(self, name: str, merge: Merge, path: tuple[str | int, ...]) -> Iterator[ActionProblem]:
        item = self.items.get(name)
        call = aggregate_of(self.plan, item)
        if item is None:
            return
        if merge in SKETCHES:
            if call is not None and BY_AGGREGATE.get(call.definition.name) != merge:
                yield ActionProblem(f"column '{name}' is {_shown(call)}, which is no {merge} sketch", path)
        elif not Type.NUMBER.accepts(item.value.type):
            yield ActionProblem(
                f"column '{name}' holds {item.value.type.value}, which cannot merge",
                path,
                "merge numbers; make others 'keys'",
            )
        elif merge in ("count", "sum") and call is not None and not _adds_up(call, merge):
            yield ActionProblem(
                f"column '{name}' is {_shown(call)}, whose results do not add up",
                path,
                _remedy(call),
            )

    # --- derived from the plan ------------------------------------------------------------------------------

    def filled(self) -> tuple[CloudSettings, list[ActionProblem]]:
        """The settings with keys, merges, types and window columns derived where they were not written."""
        settings = self.settings
        update: dict[str, object] = {}
        problems: list[ActionProblem] = []
        for field, which in (("window_start", "start"), ("window_end", "end")):
            found = self._bound_of_window(which)
            if field not in settings.model_fields_set and found is not None:
                update[field] = found
        if settings.fields is not None:
            update["fields"] = [*settings.fields, *self.plan.states]
        merge = settings.merge
        if merge is None:
            merge, problems = self._merges()
            update["merge"] = merge
        update["types"] = self._types(merge) | settings.types
        if settings.keys is None:
            update["keys"] = self._keys(merge)
            if self.is_open:
                problems.append(
                    ActionProblem(
                        "'keys' is missing: the messages decide which columns the rows have",
                        hint="name the columns",
                    )
                )
            elif not self.plan.aggregates and settings.merge is None:
                problems.append(
                    ActionProblem(
                        "'keys' is missing: the SELECT has no aggregates that would tell values from keys",
                        hint="name the columns that identify a row; the cloud counts the rows of each",
                    )
                )
        if unknown := [name for name in settings.types if name not in merge]:
            problems.append(
                ActionProblem(f"'types' names columns that do not merge: {', '.join(unknown)}", ("types",))
            )
        bound = settings.model_copy(update=update)
        for number, name in enumerate(settings.hashed):
            if name not in (bound.keys or ()):
                problems.append(ActionProblem(f"column '{name}' is no key", ("hashed", number)))
        return bound, problems

    def _merges(self) -> tuple[dict[str, How], list[ActionProblem]]:
        merges: dict[str, How] = {}
        problems = []
        for name, item in self.items.items():
            if name in (self.settings.keys or ()) or not _has_aggregate(item.value):
                continue
            call = aggregate_of(self.plan, item)
            merge = self._merge_of(name, call) if call is not None else None
            if name in self.plan.states and merge not in SKETCHES:
                continue
            if merge is not None:
                merges[name] = merge
                continue
            what = _shown(call) if call is not None else "computed from aggregates"
            hint = (
                _remedy(call)
                if call is not None
                else f"leave it out with excludeFields: [{name}], or name it in 'keys'"
            )
            problems.append(ActionProblem(f"column '{name}' is {what}, which cannot merge", hint=hint))
        return merges, problems

    def _merge_of(self, column: str, call: AggregateCall) -> How | None:
        name = call.definition.name
        if (kind := timed(call)) and (at := state_name(column, "at")) in self.items:
            return Timed(kind=kind, at=at)
        if counts_distinct(call):
            sketch = self._twin(call, "theta_sketch", distinct=False)
            return Sketched(kind="distinct", sketch=sketch, part=0) if sketch else None
        if name in PERCENTILES and not call.distinct:
            sketch = self._twin(call, "kll_sketch")
            part = call.constants[0] if call.constants else 0.5
            return Sketched(kind="percentile", sketch=sketch, part=part) if sketch else None
        if name == "avg" or name in SAMPLE:
            total, count = self._twin(call, "sum", "lot_sum"), self._twin(call, "count", "lot_count")
            if not total or not count or call.distinct:
                return None
            made_of = {"sum": total, "count": count}
            return Average(**made_of) if name == "avg" else Spread.model_validate(made_of | {"kind": name})
        merge = BY_AGGREGATE.get(name)
        return None if merge is None or (merge in ("count", "sum") and not _adds_up(call, merge)) else merge

    def _twin(self, call: AggregateCall, *names: str, distinct: bool | None = None) -> str | None:
        return companion(self.plan, [*self.items], call, names, distinct=distinct)

    def _keys(self, merge: dict[str, How]) -> list[str]:
        used = set(merge) | {
            name
            for item in merge.values()
            if isinstance(item, Average | Spread)
            for name in (item.sum, item.count)
        }
        used |= {item.at for item in merge.values() if isinstance(item, Timed)}
        return [
            name
            for name, item in self.items.items()
            if name not in used
            and not _has_aggregate(item.value)
            and not _tells_time(item.value)
            and name not in (self.settings.window_start, self.settings.window_end)
        ]

    def _types(self, merge: dict[str, How]) -> dict[str, Kind]:
        """The type of each value column: `int` if the plan knows that it is whole, else `float`."""
        types: dict[str, Kind] = {}
        for name, how in merge.items():
            item = self.items.get(how.sum if isinstance(how, Average | Spread) else name)
            if item is not None and isinstance(how, Timed):
                if (kind := TIMED_TYPES.get(item.value.type)) is not None:
                    types[name] = kind
            elif item is not None and how not in ("count", *SKETCHES) and not isinstance(how, Sketched):
                types[name] = "int" if item.value.type is Type.INTEGER else "float"
        return types


def _has_aggregate(value: Bound) -> bool:
    return any(isinstance(part, Slot) and part.kind == "aggregate" for part in value.walk())


def _tells_time(value: Bound) -> bool:
    return isinstance(value, Slot) and value.kind == "window"


def _adds_up(call: AggregateCall, merge: Merge) -> bool:
    """True if the results over two sets of events add up to the result over both."""
    merges = BY_AGGREGATE.get(call.definition.name)
    return not call.distinct and (merges == merge or (merge == "sum" and merges == "count"))


def _shown(call: AggregateCall) -> str:
    return f"{call.definition.name}({'distinct ' if call.distinct else ''}…)"


def _remedy(call: AggregateCall) -> str:
    if call.definition.name in ("avg", *SAMPLE) and not call.distinct:
        return "write no 'merge' for it, or {sum: column, count: column}: the mean of means is not the mean"
    if counts_distinct(call):
        return (
            "write no 'merge' for it, with pip install 'penstock[sketch]': distinct counts merge "
            "from a sketch"
        )
    return (
        "select what merges (count, sum, avg, min, max, stddev and variances, first and last, "
        "percentiles, sketches), or leave the column out with excludeFields"
    )

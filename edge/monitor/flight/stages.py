"""The stages that the events pass, with their counts: what goes into one is what came
out of the one before."""

from __future__ import annotations

from dataclasses import dataclass, field

from edge.monitor.flight.observe import Observations
from sql import Plan
from sql.explain.tally import Tally
from sql.plan.logical import ChoicePlan, SetPlan, SplitPlan, TriggerPlan


@dataclass(slots=True)
class Stage:
    """The fate of the items that came to one stage.

    unit   the unit of the counts: messages, events, rows
    lost   the number of items that ended here, by reason
    held   the number of items still here: they wait for the watermark, or are in a window
    """

    name: str
    unit: str
    count: int
    passed: int
    lost: dict[str, int] = field(default_factory=dict)
    held: int = 0

    @property
    def is_end(self) -> bool:
        """True if no item passed."""
        return self.count > 0 and self.passed == 0


def stages_of(seen: Observations) -> list[Stage]:
    """The stages of a rule, in the order of the events' way; without results where one key is asked for."""
    plan = seen.plan
    found = [_received(seen)]
    if plan is not None and plan.context is not None and len(plan.sources) == 1:
        found.append(_partitions(seen, plan.context.name))
    found.append(_filter(seen))
    if plan is not None and plan.timestamp is not None:
        found.append(_event_time(seen, found[-1].passed))
    if plan is not None and any(source.pattern or source.recognize for source in plan.sources):
        found.append(_matches(seen, found[-1]))
    found += [_pairs(tally) for tally in seen.tallies if tally.probe.stage == "pairs"]
    samples = next((tally for tally in seen.tallies if tally.probe.stage == "samples"), None)
    if samples is not None:
        found += [_windows(seen, found[-1], samples), _having(samples)]
    if not seen.is_of_a_key and (plan is None or not isinstance(plan.acts, SplitPlan | SetPlan)):
        found.append(_output(seen, found[-1]))
    return found


def _received(seen: Observations) -> Stage:
    messages = sum(census.messages or census.rows for census in seen.streams.values())
    lost = {reason: count for census in seen.streams.values() for reason, count in census.bad.items()}
    return Stage("received", "messages", messages, messages - sum(lost.values()), lost)


def _partitions(seen: Observations, context: str) -> Stage:
    """Events that came while a partition of the rule's context was open;
    in overlapping ones they count once for each."""
    rows = sum(census.rows for census in seen.streams.values())
    inside = sum(tally.rows + tally.errors.total() for tally in seen.tallies if tally.probe.stage == "events")
    outside = max(0, rows - inside)
    lost = {f"no partition of context {context} was open": outside} if outside else {}
    return Stage("context", "events", inside + outside, inside, lost)


def _filter(seen: Observations) -> Stage:
    """FILTER and WHERE on single events; of rules without such a clause everything passes."""
    tallies = [tally for tally in seen.tallies if tally.probe.stage == "events"]
    if not tallies:
        rows = sum(census.rows for census in seen.streams.values())
        return Stage("filter", "events", rows, rows)
    stage = Stage(
        "filter", "events", sum(tally.rows for tally in tallies), sum(tally.passed for tally in tallies)
    )
    for tally in tallies:
        _add_losses(stage, tally)
    return stage


def _add_losses(stage: Stage, tally: Tally) -> None:
    for failed, count in zip(tally.conditions, tally.first_failed, strict=True):
        if count:
            name = f"{failed.condition.clause} {failed.condition.text}"
            stage.lost[name] = stage.lost.get(name, 0) + count
    for message, count in tally.errors.items():
        stage.count += count
        stage.lost[message] = stage.lost.get(message, 0) + count


def _event_time(seen: Observations, count: int) -> Stage:
    late, future = seen.counters.get("late", 0), seen.counters.get("refused_future", 0)
    lost = {name: number for name, number in (("late", late), ("too far in the future", future)) if number}
    held = min(seen.waiting, max(0, count - late - future))
    return Stage("event time", "events", count, max(0, count - late - future - held), lost, held)


def _matches(seen: Observations, before: Stage) -> Stage:
    """Events begin searches, go on with them, or fit nothing: the number of matches does not follow."""
    matches = seen.counters.get("matches", 0)
    return Stage("pattern", before.unit, before.passed, matches, {}, 0 if matches else before.passed)


def _pairs(tally: Tally) -> Stage:
    stage = Stage("joined", "rows", tally.rows, tally.passed)
    _add_losses(stage, tally)
    return stage


def _windows(seen: Observations, before: Stage, samples: Tally) -> Stage:
    """Events enter, rows are shown: one number does not follow from the other."""
    shown = samples.rows + sum(samples.errors.values())
    held = before.passed if shown == 0 else 0
    return Stage("windows", before.unit, before.passed, shown, {}, held)


def _having(samples: Tally) -> Stage:
    stage = Stage("having", "rows", samples.rows, samples.passed)
    _add_losses(stage, samples)
    return stage


def _output(seen: Observations, before: Stage) -> Stage:
    rows = seen.results.rows
    lost: dict[str, int] = {}
    held_back = before.passed - rows
    if held_back > 0 and before.name in ("having", "filter", "joined"):
        lost[_limit_of(seen.plan)] = held_back
    return Stage("output", "rows", before.passed, rows, lost)


def _limit_of(plan: Plan | None) -> str:
    """The reason why rows are held back after HAVING."""
    if plan is None:
        return "held back"
    if isinstance(plan.acts, TriggerPlan):
        return f"no row of '{plan.acts.relation}' was changed"
    if isinstance(plan.acts, ChoicePlan):
        return f"no row of '{plan.sources[1].stream}' met the conditions"
    if plan.into_table is not None:
        return f"into table {plan.into_table.table}"
    if plan.output is not None:
        return "output limit"
    if plan.limit is not None or plan.offset is not None:
        return "LIMIT"
    if plan.distinct:
        return "DISTINCT"
    if any(spread.kind == "requests" for spread in plan.spreads):
        return "dedup_trigger"
    return "a condition on earlier hits" if plan.hits else "held back"

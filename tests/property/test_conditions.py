"""Conditions as columns: over all scenarios, the rows of which all conditions hold are the rows that were
given out, or that SELECT could not make."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from sql import Emission
from sql.explain.probes import Probe, probes
from sql.explain.tally import Tally
from sql.plan.logical import Plan
from tests.scenarios.format import Scenario, read
from tests.scenarios.runner import World

FOLDER = Path(__file__).parents[1] / "scenarios"
FILES = sorted(FOLDER.glob("*/*.scenario"))


def is_told_by(plan: Plan, probe: Probe) -> bool:
    """True if the rows of the probe whose conditions hold are just those of the rule: nothing else drops any,
    none acts on several rows of a relation, and no relation refuses any."""
    limits = (
        plan.output
        or plan.limit
        or plan.offset
        or plan.distinct
        or plan.spreads
        or plan.numberings
        or plan.hits
        or plan.insert
    )
    if limits or plan.acts or plan.subqueries or plan.options.emit_empty or plan.selector != "istream":
        return False
    has_samples = any(item.stage == "samples" for item in probes(plan))
    is_event_wise = not (
        plan.window
        or plan.aggregates
        or plan.grouping_sets
        or plan.joins
        or any(source.keeps or source.lot for source in plan.sources)
    )
    return (
        probe.stage == "samples"
        if has_samples
        else probe.stage == "events" and is_event_wise and not plan.timestamp
    )


class Watched:
    """A scenario with probes beside its rules."""

    def __init__(self, scenario: Scenario) -> None:
        self.world = World(scenario)
        self.tallies: dict[str, Tally] = {}
        self.rows: dict[str, int] = {}
        self.errors: Counter[str] = Counter()
        """By rule and by probe."""
        for rule, query in list(self.world.engine.queries.items()):
            for number, probe in enumerate(probes(query.plan)):
                if is_told_by(query.plan, probe):
                    name = f"why {number} {rule}"
                    self.world.engine.deploy(name, probe.plan, self.world.started_ms)
                    self.tallies[name] = Tally(probe)
                    self.rows[rule] = 0

    def take(self, emissions: list[Emission]) -> None:
        for emission in emissions:
            self.errors[emission.rule] += emission.kind == "error"
            if emission.kind == "rows" and emission.rule in self.tallies:
                self.tallies[emission.rule].add(emission.inserted, emission.at_ms)
            elif emission.kind == "rows" and emission.rule in self.rows:
                self.rows[emission.rule] += len(emission.inserted)


@pytest.mark.parametrize("scenario", [pytest.param(read(path), id=path.stem) for path in FILES])
def test_rows_whose_conditions_hold_are_those_given_out(scenario: Scenario) -> None:
    if any(step.action == "restart" for step in scenario.steps):
        return
    watched = Watched(scenario)
    for step in scenario.steps:
        if step.action != "read":
            watched.take(watched.world.perform(step, [step.row]))
    for name, tally in watched.tallies.items():
        rule = name.split(" ", 2)[2]
        unmade = watched.errors[rule] - watched.errors[name]
        assert tally.passed == watched.rows[rule] + unmade, name
        assert tally.passed + sum(tally.first_failed) == tally.rows


def test_many_rules_of_the_scenarios_are_looked_at() -> None:
    watched = [tally for path in FILES for tally in Watched(read(path)).tallies.values()]
    assert len(watched) > 40

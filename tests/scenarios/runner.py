"""Runs a scenario on the engine and writes down what happened in the scenario's own words."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from sql import Catalog, Emission, RuleOptions, SqlError, plan_rule, run_script
from sql.errors import line_and_column
from tests.conformance.compare import same_rows
from tests.conformance.structs import StructEngine, structs_of
from tests.scenarios.format import Output, Row, Scenario, Setup, Step, show_instant, show_row


@dataclass(frozen=True)
class Drive:
    """How a scenario is driven.

    together  events of one instant together
    restarts  a restart before every step
    structs   events as structs of the columns that are read, where the gateway decodes messages into such
    """

    together: bool = False
    restarts: bool = False
    structs: bool = False


MODES = {
    "single": Drive(),
    "batched": Drive(together=True),
    "restarted": Drive(restarts=True),
    "batched and restarted": Drive(together=True, restarts=True),
    "of structs": Drive(together=True, structs=True),
    "of structs and restarted": Drive(restarts=True, structs=True),
}


class World:
    """An engine with the rules of a scenario, which can be thrown away and made anew from stored state."""

    def __init__(self, scenario: Scenario, *, structs: bool = False) -> None:
        self.setup = [item for item in scenario.setup if item.refused is None]
        self.started_ms = scenario.steps[0].at_ms if scenario.steps else 0
        self.structs: dict[str, frozenset[str]] = {}
        self.engine = self._start()
        if structs:
            self.structs = structs_of(self.engine)
            self.engine = self._start()

    def _start(self) -> StructEngine:
        engine = StructEngine(Catalog(), structs=self.structs)
        for item in self.setup:
            options = RuleOptions(**item.options)
            if item.kind == "script":
                run_script(engine, item.text, self.started_ms, options)
            else:
                engine.deploy(item.name, plan_rule(item.text, engine.catalog, options), self.started_ms)
        return engine

    def restart(self) -> None:
        """Store the state of every rule and variable as JSON, and restore it into a new engine."""
        old = self.engine
        saved = json.dumps({name: old.snapshot(name) for name in old.queries}, allow_nan=False)
        values = {name: variable.value for name, variable in old.catalog.variables.items()}
        self.engine = self._start()
        for name, value in values.items():
            self.engine.catalog.variables[name].value = value
        for name, state in json.loads(saved).items():
            self.engine.restore(name, state)

    def perform(self, step: Step, rows: list[Row]) -> list[Emission]:
        """Let time go on to the step, and do it. `rows` are the events of a push."""
        emissions = [*self.engine.advance(step.at_ms, "once" if step.once else "step")]
        match step.action:
            case "push":
                emissions = emissions + self.engine.push(step.name, rows, step.at_ms)
            case "flush":
                emissions = emissions + self.engine.flush(step.at_ms)
            case "set":
                ((name, value),) = step.row.items()
                self.engine.set_variable(name, value)
        return emissions


def run(scenario: Scenario, drive: Drive) -> list[str]:
    """The lines of the scenario as it went: equal to those of the file if everything went as written."""
    lines = list(scenario.lines)
    world = World(scenario, structs=drive.structs)
    listened = scenario.rules
    for steps, got in reversed(list(_performed(scenario, world, drive, listened))):
        _write_down(lines, steps, got, several=len(listened) > 1, structs=world.structs)
    return lines


def _performed(
    scenario: Scenario, world: World, drive: Drive, listened: list[str]
) -> Iterable[tuple[list[Step], list[Output]]]:
    for steps in _groups(scenario.steps, drive.together):
        first = steps[0]
        if drive.restarts or first.action == "restart":
            world.restart()
        if first.action == "restart":
            continue
        if first.action == "read":
            world.engine.advance(first.at_ms)
            content = world.engine.read(first.name)
            yield steps, [Output(first.name, "=", row, first.at_ms) for row in content]
            continue
        emissions = world.perform(first, [step.row for step in steps])
        yield (
            steps,
            [
                output
                for emission in emissions
                if emission.rule in listened
                for output in _outputs(emission, first.at_ms)
            ],
        )


def _groups(steps: list[Step], together: bool) -> list[list[Step]]:
    """The steps one by one, or consecutive events of one stream and instant together."""
    groups: list[list[Step]] = []
    for step in steps:
        last = groups[-1][-1] if groups else None
        is_same = (
            last
            and (last.action, last.name, last.at_ms) == ("push", step.name, step.at_ms)
            and step.action == "push"
        )
        if together and is_same:
            groups[-1].append(step)
        else:
            groups.append([step])
    return groups


def _outputs(emission: Emission, now_ms: int) -> Iterable[Output]:
    if emission.kind != "rows":
        rows = emission.inserted or [{}]  # what a timer could not evaluate is none of an event
        return [Output(emission.rule, emission.kind, row, now_ms) for row in rows]
    return [
        *(Output(emission.rule, "+", row, emission.at_ms) for row in emission.inserted),
        *(Output(emission.rule, "-", row, emission.at_ms) for row in emission.removed),
    ] or [Output(emission.rule, "rows", {}, emission.at_ms)]


def _write_down(
    lines: list[str], steps: list[Step], got: list[Output], *, several: bool, structs: Collection[str]
) -> None:
    """Put what came out in place of the expected lines, unless it is what they say."""
    expected = [output for step in steps for output in step.expected]
    if steps[0].name in structs:
        expected, got = ([_without_event(output) for output in outputs] for outputs in (expected, got))
    if _same(expected, got):
        return
    shown = [_shown(output, steps[-1].at_ms, several) for output in got]
    for step in reversed(steps):
        end = step.line
        while end < len(lines) and lines[end].startswith(" "):
            end += 1
        lines[step.line : end] = shown if step is steps[-1] else []


def _without_event(output: Output) -> Output:
    """An error, or a late event, without the columns of the event: a struct has those that are read."""
    return replace(output, row={}) if output.sign in ("error", "late") else output


def _shown(output: Output, at_ms: int, several: bool) -> str:
    words = [output.rule] if several else []
    words += [f"@{show_instant(output.at_ms)}"] if output.at_ms != at_ms else []
    words += ["rows 0"] if output.sign == "rows" else [output.sign, show_row(output.row)]
    return "    " + " ".join(words).rstrip()


def _same(expected: list[Output], got: list[Output]) -> bool:
    """Whether every rule gave the expected rows: inserted ones in order, the others in any order."""
    kinds = {_kind(output) for output in [*expected, *got]}

    def rows(outputs: list[Output], kind: tuple[str, str, int]) -> list[Row]:
        return [output.row for output in outputs if _kind(output) == kind]

    return all(same_rows(rows(got, kind), rows(expected, kind), ordered=kind[1] == "+") for kind in kinds)


def _kind(output: Output) -> tuple[str, str, int]:
    return output.rule, output.sign, output.at_ms


def difference(scenario: Scenario, drive: Drive) -> str:
    """A unified diff from the file to what happened; empty if it went as written."""
    return "\n".join(
        difflib.unified_diff(scenario.lines, run(scenario, drive), "expected", "happened", n=4, lineterm="")
    )


def refusals(scenario: Scenario) -> list[str]:
    """What is wrong with the refusals of a scenario; empty if each is refused for its error alone."""
    return [text for item in scenario.setup if item.refused for text in [_refusal(scenario, item)] if text]


def _refusal(scenario: Scenario, item: Setup) -> str:
    assert item.refused is not None
    code, line, column = item.refused
    before = Scenario(scenario.path, [], [other for other in scenario.setup if other.kind == "script"])
    engine = World(before).engine
    try:
        run_script(engine, item.text, 0, RuleOptions(**item.options))
    except SqlError as error:
        found = [
            (problem.code, *line_and_column(item.text, problem.span.start))
            for problem in error.problems
            if problem.severity == "error"
        ]
        only = found == [(code, line, column)]
        return "" if only else f"expected {code} {line}:{column} alone, got {found}\n{error}"
    return f"expected {code} {line}:{column}, but the statement is accepted:\n{item.text}"

"""Runs one scenario on the engine and compares what it gives out."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from sql import Catalog, Emission, Engine, Plan, RuleOptions, plan_rule
from sql.errors import DataError, SqlError
from tests.conformance import epl
from tests.conformance.compare import Row, decoded, lines_of, same_rows, text_of
from tests.conformance.live import run_live
from tests.conformance.lots import run_lots
from tests.conformance.restart import Restartable
from tests.conformance.scenario import DRIVES, Difference, Drive, Mode, Scenario, Skip
from tests.conformance.steps import batches
from tests.support.streams import define

NOT_SUPPORTED = ("P090", "B090")
"""Codes of problems that say: a construct of the language this engine does not have."""


def run(scenario: Scenario, mode: Mode = "single") -> None:
    """Run a scenario; Difference if the engine does anything else, Skip if it cannot be judged."""
    try:
        for drive in DRIVES[mode]:
            _runner(scenario)(scenario, drive)
    except SqlError as error:
        reasons = [problem.message for problem in error.problems if problem.code in NOT_SUPPORTED]
        if reasons:
            raise Skip(reasons[0].split(" (")[0]) from None
        raise Difference(f"    refused: {error}") from None
    except (Skip, Difference):
        raise
    except Exception as error:  # noqa: BLE001
        # A crash is the worst difference; the scenarios after it still run.
        raise Difference("    crashed: " + "".join(traceback.format_exception(error))) from None


def _runner(scenario: Scenario) -> Callable[[Scenario, Drive], Engine | None]:
    if scenario.is_live:
        return run_live
    if scenario.is_lots:
        return run_lots
    return run_epl if scenario.is_epl else run_kuiper


# --- eKuiper rules: one list of emissions -------------------------------------------------------------------


def run_kuiper(scenario: Scenario, drive: Drive) -> Engine:
    """A rule over a stream: the emissions in order, and how many events were late. The engine it ran on."""
    data = scenario.data

    def prepare() -> tuple[Catalog, Plan]:
        catalog = Catalog()
        define(catalog, data["ddl"])
        options = data["options"]
        chosen = RuleOptions(
            late_tolerance_ms=options.get("lateTolerance", 0), event_time=options.get("isEventTime")
        )
        return catalog, plan_rule(data["sql"], catalog, chosen)

    now = next((step["advance"] for step in scenario.steps if "advance" in step), 0)
    machine = Restartable(prepare, now, drive)
    emissions: list[Emission] = []
    for step in batches(scenario.steps, together=drive.batched):
        machine.restart(now)
        if "advance" in step:
            now = step["advance"]
            emissions += machine.engine.advance(now)
        elif "flush" in step:
            emissions += machine.engine.flush(now)
        else:
            emissions += machine.engine.push(step["send"], [decoded(event) for event in step["events"]], now)
    _compare_kuiper(scenario, emissions)
    return machine.engine


def _compare_kuiper(scenario: Scenario, emissions: list[Emission]) -> None:
    wanted = [(item["at"], decoded(item["rows"])) for item in scenario.data["expect"]]
    got = [(item.at_ms, item.inserted) for item in emissions if item.kind == "rows"]
    errors = [item.error for item in emissions if item.kind == "error"]
    late = sum(len(item.inserted) for item in emissions if item.kind == "late")
    rest = list(wanted)
    extra = []
    for at_ms, rows in got:
        index = next(
            (i for i, (at, other) in enumerate(rest) if at == at_ms and same_rows(rows, other, ordered=True)),
            None,
        )
        if index is None:
            extra.append((at_ms, rows))
        else:
            del rest[index]
    ordered = [at for at, _ in got] == sorted(at for at, _ in got)
    if extra or rest or errors or late != scenario.data["late"] or not ordered:
        lines = ["    not expected:", *lines_of(extra), "    missing:", *lines_of(rest)]
        lines += [
            f"    late: {late}, expected {scenario.data['late']}",
            *(f"    error: {error}" for error in errors),
        ]
        raise Difference("\n".join(lines if ordered else [*lines, "    not in order of time"]))


# --- EPL: expectations at every step ------------------------------------------------------------------------


def run_epl(scenario: Scenario, drive: Drive) -> Engine | None:
    """Statements, then steps that each say what they cause. The engine they ran on; None
    if they were refused."""
    data = scenario.data
    try:
        machine = epl.Session(data["epl"], drive, options_of(data))
    except SqlError as error:
        if data.get("error") and not any(problem.code in NOT_SUPPORTED for problem in error.problems):
            return None
        raise
    if data.get("error"):
        raise Difference("    accepted a statement that must be refused")
    judged = "differs" not in data or "decided" in data
    loose = Loose(machine.texts, bool(data.get("unordered")))
    joined = data.get("compare") == "instant"
    for number, step in enumerate(batches(scenario.steps, together=drive.batched)):
        machine.restart()
        if "read" in step or "partitions" in step:
            content = (
                machine.read(step["read"], step.get("in"))
                if "read" in step
                else machine.partitions(step["partitions"])
            )
            if judged and not same_rows(content, decoded(step["content"]), ordered=False):
                raise Difference(_shown(number, step, [{"content": content}], [{"content": step["content"]}]))
            continue
        if "deploy" in step or "undeploy" in step:
            _change_deployment(machine, number, step)
            continue
        emissions = _performed(machine, number, step)
        if judged:
            _compare_step(number, step, emissions, loose, joined=joined)
            _compare_rows(number, step, machine.rows)
    if not judged:
        raise Skip(f"no decision recorded: {data['differs']}")
    return machine.engine


def _change_deployment(machine: epl.Session, number: int, step: dict[str, Any]) -> None:
    refused = None
    try:
        if "deploy" in step:
            machine.deploy(step["deploy"])
        else:
            machine.undeploy(step["undeploy"])
    except SqlError as error:
        if any(problem.code in NOT_SUPPORTED for problem in error.problems):
            raise
        refused = error
    if (refused is not None) != bool(step.get("error")):
        raise Difference(_shown(number, step, [{"refused": str(refused)}], []))


def options_of(data: dict[str, Any]) -> RuleOptions:
    """The limits in force. One that is only reported in the reference, and refuses nothing, is none."""
    config = data.get("config", {})
    bounds = {}
    if config.get("pattern_prevent_start"):
        bounds["max_pattern_partials"] = config["pattern_max"]
    if config.get("recognize_prevent_start"):
        bounds["max_recognize_attempts"] = config["recognize_max"]
    return RuleOptions(**bounds)


class Loose:
    """Of which statements the rows of one emission come in any order."""

    def __init__(self, texts: dict[str, str], unordered: bool) -> None:
        self.texts = texts
        self.unordered = unordered

    def __getitem__(self, name: str) -> bool:
        text = self.texts.get(name, "").lower()
        if self.unordered and "order by" not in text:
            return True
        return "group by" in text or "groupwin" in text


def _performed(machine: epl.Session, number: int, step: dict[str, Any]) -> list[Emission]:
    """What a step causes; one that must be refused is, and changes nothing."""
    if not step.get("error"):
        return machine.perform(step)
    try:
        machine.perform(step)
    except (SqlError, DataError):
        return []
    raise Difference(f"    at step {number}: accepted what must be refused: {text_of(step)}")


def _compare_rows(number: int, step: dict[str, Any], rows: list[Row]) -> None:
    """What a question answered, or the value of a variable."""
    if "variable" in step:
        wanted = [{"value": decoded(step["value"])}]
    elif "query" in step and not step.get("error"):
        wanted = decoded(step["rows"])
    else:
        return
    if not same_rows(rows, wanted, ordered="order by" in step.get("query", "").lower()):
        raise Difference(_shown(number, step, [{"rows": rows}], [{"rows": wanted}]))


def _compare_step(
    number: int, step: dict[str, Any], emissions: list[Emission], grouped: Loose, *, joined: bool = False
) -> None:
    wanted: dict[str, list[tuple[int, list[Row], list[Row]]]] = {}
    for item in step.get("expect", ()):
        entry = (item["at"], decoded(item["insert"]), decoded(item["remove"]))
        wanted.setdefault(item["statement"], []).append(entry)
    got: dict[str, list[tuple[int, list[Row], list[Row]]]] = {}
    for out in emissions:
        if out.kind != "rows":
            raise Difference(_shown(number, step, emissions, step.get("expect", [])))
        got.setdefault(out.rule, []).append((out.at_ms, out.inserted, list(out.removed)))
    if "merged" in step:
        wanted, got = _merged(wanted), _merged(got)
    if joined:
        wanted, got = _joined(wanted), _joined(got)
    for name in wanted.keys() | got.keys():
        mine, theirs = got.get(name, []), wanted.get(name, [])
        same = len(mine) == len(theirs) and all(
            a[0] == b[0]
            and same_rows(a[1], b[1], ordered=not (joined or grouped[name]))
            and same_rows(a[2], b[2], ordered=False)
            for a, b in zip(mine, theirs, strict=True)
        )
        if not same:
            raise Difference(_shown(number, step, emissions, step.get("expect", [])))


def _merged(
    posts: dict[str, list[tuple[int, list[Row], list[Row]]]],
) -> dict[str, list[tuple[int, list[Row], list[Row]]]]:
    """The posts of a batch of events as one: how a batch is cut into posts is not part of the result."""
    return {
        name: [
            (
                items[0][0],
                [row for item in items for row in item[1]],
                [row for item in items for row in item[2]],
            )
        ]
        for name, items in posts.items()
    }


def _joined(
    posts: dict[str, list[tuple[int, list[Row], list[Row]]]],
) -> dict[str, list[tuple[int, list[Row], list[Row]]]]:
    """The posts of one statement with the same instant as one: the order of several partitions is not
    compared."""
    out: dict[str, list[tuple[int, list[Row], list[Row]]]] = {}
    for name, items in posts.items():
        by_instant: dict[int, tuple[int, list[Row], list[Row]]] = {}
        for at, new, old in items:
            entry = by_instant.setdefault(at, (at, [], []))
            entry[1].extend(new)
            entry[2].extend(old)
        out[name] = list(by_instant.values())
    return out


def _shown(number: int, step: dict[str, Any], got: list[Any], wanted: list[Any]) -> str:
    what = {name: value for name, value in step.items() if name != "expect"}
    lines = [f"    at step {number}: {text_of(what)}", "    expected:", *lines_of(wanted), "    got:"]
    shown = [
        {
            "at": item.at_ms,
            "statement": item.rule,
            "insert": item.inserted,
            "remove": item.removed,
            **({"kind": item.kind, "error": item.error} if item.kind != "rows" else {}),
        }
        if isinstance(item, Emission)
        else item
        for item in got
    ]
    return "\n".join([*lines, *lines_of(shown)])

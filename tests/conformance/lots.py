"""Stream queries (`streams_random.jsonl`): items arrive one by one, time moves through every
due instant up to an end.

The values inside a lot compare as a multiset; `expect` holds the lots in order.
"""

from __future__ import annotations

from typing import Any

from sql import Catalog, Emission, Engine, Plan, RuleOptions, plan_rule
from tests.conformance.compare import decoded, same_rows
from tests.conformance.restart import Restartable
from tests.conformance.scenario import Difference, Drive, Scenario
from tests.support.streams import define

STREAM = "CREATE STREAM E (id STRING, k STRING, u STRING, v FLOAT) WITH (DATASOURCE='E')"


def run_lots(scenario: Scenario, drive: Drive) -> Engine:
    """Run a stream query created at 0; Difference where a lot is not as expected."""
    data = scenario.data

    def prepare() -> tuple[Catalog, Plan]:
        catalog = Catalog()
        define(catalog, STREAM)
        return catalog, plan_rule(data["query"], catalog, RuleOptions())

    machine = Restartable(prepare, 0, drive)
    emissions: list[Emission] = []
    now = 0
    for item in data["items"]:
        machine.restart(now)
        now = item["a"]
        row = {name: value for name, value in item.items() if name != "a"}
        emissions += machine.engine.advance(now)
        emissions += machine.engine.push("E", [decoded(row)], now)
    machine.restart(now)
    emissions += machine.engine.advance(data["end"])
    _compare(data["expect"], emissions)
    return machine.engine


def _compare(expect: list[dict[str, Any]], emissions: list[Emission]) -> None:
    errors = [item.error for item in emissions if item.kind == "error"]
    got = [(item.at_ms, [next(iter(row.values()), None) for row in item.inserted]) for item in emissions]
    wanted = [(item["at"], decoded(item["values"])) for item in expect]
    same = len(got) == len(wanted) and all(
        at == other and same_rows(_rows(mine), _rows(theirs), ordered=False)
        for (at, mine), (other, theirs) in zip(got, wanted, strict=True)
    )
    if not same or errors:
        lines = ["    expected:", *map(_line, wanted), "    got:", *map(_line, got), *map(str, errors)]
        raise Difference("\n".join(lines))


def _line(lot: Any) -> str:
    return f"      {lot}"


def _rows(values: list[Any]) -> list[dict[str, Any]]:
    return [{"value": value} for value in values]

"""`python -m benchmarks [NAME…] [--json OUT]`: runs the benchmarks named, or all, one after the other.

`python -m benchmarks fleet --help`, `python -m benchmarks backfill --help`: the cloud job over a fleet,
and the engine inside Spark. They need Spark and have arguments of their own.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks import (
    contexts,
    daemon,
    fairness,
    gateway_cpu,
    growth,
    intake,
    latency,
    latency_state,
    page,
    patterns,
    recorder,
    relations,
    replay,
    rules,
    statements,
)
from benchmarks.measure import Result

CASES = {
    **rules.CASES,
    **statements.CASES,
    **relations.CASES,
    **patterns.CASES,
    **contexts.CASES,
    **replay.CASES,
    **intake.CASES,
    **latency.CASES,
    **latency_state.CASES,
    **daemon.CASES,
    **gateway_cpu.CASES,
    **fairness.CASES,
    **recorder.CASES,
    **page.CASES,
    **growth.CASES,
}

GROUPS = {"gateway_cpu": tuple(gateway_cpu.CASES)}
"""Names that stand for several cases."""


def main(arguments: list[str]) -> int:
    """Run, print a table and a line `NAME ratio VALUE` for each."""
    if arguments[:1] == ["fleet"]:
        from benchmarks import fleet

        return fleet.main(arguments[1:])
    if arguments[:1] == ["backfill"]:
        from benchmarks import backfill

        return backfill.main(arguments[1:])
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join((*CASES, *GROUPS)))
    parser.add_argument("--json", metavar="OUT", type=Path, help="write the results here as well")
    chosen = parser.parse_args(arguments)
    names = [case for name in chosen.names for case in GROUPS.get(name, (name,))]
    unknown = [name for name in names if name not in CASES]
    if unknown:
        parser.error(f"unknown benchmark '{unknown[0]}'; there are {', '.join(CASES)}")
    print(f"{'name':16}{'ratio':>8}{'bar':>8}{'ns/event':>10}{'base ns':>9}{'events/s':>12}", flush=True)
    results: list[Result] = []
    for name in names or CASES:
        result = CASES[name]()
        results.append(result)
        print(row(result), flush=True)
    print()
    for result in results:
        for line in result.lines:
            print(line)
        if result.ratio is not None:
            print(f"{result.name} ratio {result.ratio:.2f}")
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(result) for result in results], indent=1), encoding="utf-8")
    return 0


def row(result: Result) -> str:
    """A line of the table."""

    def cell(value: float | None, width: int, form: str) -> str:
        return format("" if value is None else format(value, form), f">{width}")

    return (
        f"{result.name:16}{cell(result.ratio, 8, '.2f')}{cell(result.bar, 8, '.2f')}"
        f"{cell(result.cost_ns, 10, '.0f')}"
        f"{cell(result.base_ns, 9, '.0f')}{cell(result.events_per_s, 12, ',.0f')}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Search for scenarios that are not run alike.

    python -m tests.conformance.mutation FILE.jsonl … [--seconds N] [--seed S]
    python -m tests.conformance.mutation --composed N [--seconds N] [--seed S]
    python -m tests.conformance.mutation --replay FINDINGS.jsonl

Prints a line of JSON for the first of each kind of finding; the exit status is 1 if there is any.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.conformance.mutation.composed import composed
from tests.conformance.mutation.judge import Finding, Refused, judged
from tests.conformance.mutation.mutants import Mutants
from tests.conformance.mutation.smaller import smaller

OWN = sorted((Path(__file__).parents[1] / "scenarios").glob("*.jsonl"))


class Search:
    """Judges one changed scenario after the other, and prints the first finding of each kind."""

    def __init__(self, mutants: Mutants, *, each: int) -> None:
        self.mutants, self.each = mutants, each
        self.counts: Counter[str] = Counter()
        self.findings: Counter[str] = Counter()

    def look(self, number: int) -> None:
        """Judge the scenario of one number."""
        data = self.mutants.make(number)
        try:
            found = judged(data)
        except Refused:
            self.counts["refused"] += 1
            return
        self.counts["run"] += 1
        if found is not None:
            self.findings[found.kind] += 1
            if self.findings[found.kind] <= self.each:
                shown = smaller(data, found)
                print(json.dumps({**shown, "number": number, "found": found.kind}), flush=True)

    @property
    def summary(self) -> str:
        """One line."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.findings.most_common())
        run, refused = self.counts["run"], self.counts["refused"]
        return f"seed {self.mutants.seed}: {run} run, {refused} refused; {kinds or 'no finding'}"


def main(arguments: list[str] | None = None) -> int:
    """Search or replay; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.mutation", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE.jsonl", default=OWN)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--each", type=int, default=1, help="how many findings of a kind are printed")
    parser.add_argument("--composed", type=int, metavar="N", help="begin with N scenarios made from nothing")
    parser.add_argument("--replay", action="store_true", help="the files hold findings")
    options = parser.parse_args(arguments)
    scenarios = [json.loads(line) for path in options.files for line in path.read_text("utf-8").splitlines()]
    if options.replay:
        return int(any(list(map(_replayed, scenarios))))
    if options.composed:
        scenarios = [*composed(options.seed, options.composed), *(scenarios if options.files != OWN else ())]
    search = Search(Mutants(scenarios, options.seed), each=options.each)
    end, number = time.monotonic() + options.seconds, 0
    while time.monotonic() < end:
        search.look(number)
        number += 1
    print(search.summary, file=sys.stderr)
    return int(bool(search.findings))


def _replayed(data: dict[str, Any]) -> Finding | None:
    try:
        found = judged(data)
    except Refused as refused:
        print(f"refused, {refused}: {_text(data)}")
        return None
    print(f"{found.kind if found else 'the same in every way'}: {_text(data)}")
    if found is not None:
        print(found.why)
    return found


def _text(data: dict[str, Any]) -> str:
    return str(data.get("sql") or "\n  ".join(data["epl"]))


if __name__ == "__main__":
    sys.exit(main())

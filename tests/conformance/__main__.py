"""Run scenario files.

    python -m tests.conformance FILE.jsonl … [--show K] [--mode
    single|batched|restart|mixed|struct] [--only TEXT]

The last line is `N passed, N failed`, with `, N skipped` when some are; the exit status is 1 if any failed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tests.conformance.run import run
from tests.conformance.scenario import DRIVES, Difference, Skip, load


def main(arguments: list[str] | None = None) -> int:
    """Run the files named on the command line; 1 if any scenario failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description="Run scenario files.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--show", type=int, default=0, metavar="K", help="print the first K differences")
    parser.add_argument("--mode", choices=DRIVES, default="single", help="how the engine is driven")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only scenarios whose name or query holds TEXT"
    )
    options = parser.parse_args(arguments)
    passed = 0
    failed: list[str] = []
    skipped: Counter[str] = Counter()
    for path in options.files:
        for scenario in load(path):
            if options.only not in scenario.name and options.only not in scenario.text:
                continue
            try:
                run(scenario, options.mode)
                passed += 1
            except Skip as skip:
                skipped[str(skip)] += 1
            except Difference as difference:
                failed.append(scenario.name)
                if len(failed) <= options.show:
                    print(f"--- {scenario.name}\n    {scenario.text}\n{difference}\n")
    for reason, count in skipped.most_common():
        print(f"skipped {count}: {reason}")
    tail = f", {sum(skipped.values())} skipped" if skipped else ""
    print(f"{passed} passed, {len(failed)} failed{tail}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

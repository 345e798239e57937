"""Run scenario files, and show how what happened differs from what they say.

    python -m tests.scenarios [FILE …] [--mode MODE] [--accept]

Without a file all run. `--accept` writes what happened into the files, but for traces: read it against the
manual before you commit it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.scenarios.runner import MODES, difference, refusals, run
from tests.scenarios.traces import files_of, read_all


def main(arguments: list[str] | None = None) -> int:
    """1 if any scenario differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios", description="Run scenario files.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--mode", choices=MODES, default="single", help="how the engine is driven")
    parser.add_argument("--accept", action="store_true", help="write what happened into the files")
    options = parser.parse_args(arguments)
    failed = 0
    scenarios = [
        scenario for path in options.files or files_of(Path(__file__).parent) for scenario in read_all(path)
    ]
    for scenario in scenarios:
        path = scenario.path
        if options.accept and path.suffix != ".traces":
            path.write_text("\n".join(run(scenario, MODES[options.mode])) + "\n", encoding="utf-8")
        elif found := [
            text for text in (difference(scenario, MODES[options.mode]), *refusals(scenario)) if text
        ]:
            failed += 1
            print(path, *found, sep="\n")
    print(f"{len(scenarios) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

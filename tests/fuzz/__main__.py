"""`python -m tests.fuzz`: looks for input that is answered in no documented way, so many
seconds for each target."""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from collections.abc import Iterator

from tests.fuzz.search import search
from tests.fuzz.targets import TARGETS


def during(seconds: float) -> Iterator[None]:
    """One item after the other, for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="TARGET", help=", ".join(target.name for target in TARGETS)
    )
    parser.add_argument("--seconds", type=float, default=30, help="for each target")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    arguments = parser.parse_args()
    logging.getLogger("penstock").setLevel(logging.CRITICAL)
    failed = False
    for target in TARGETS:
        if not arguments.names or target.name in arguments.names:
            given, found = search(target, arguments.seed, during(arguments.seconds))
            print(f"{target.name}, seed {arguments.seed}: {given} inputs, {len(found)} findings", flush=True)
            for finding in found:
                print(f"{finding.data!r}\n{finding.trace}")
            failed |= bool(found)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

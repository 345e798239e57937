"""Kill a daemon again and again while messages flow, restart its brokers, edit its rules; then count."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.crash import disk
from tests.crash.counted import EVENT_TIME, RULES
from tests.crash.kills import Campaign, Setting

SETTINGS = (
    ("5", 20, RULES),
    ("5", 0, RULES),
    ("3.1.1", 20, RULES),
    ("3.1.1", 0, RULES),
    ("5", 0, EVENT_TIME),
)
"""Version of MQTT, how many messages the broker lets be in flight (0: any number), the rules."""


def run(setting: Setting) -> bool:
    """One campaign, told in a line; whether nothing was lost or doubled."""
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        campaign = Campaign(Path(folder), setting)
        found = campaign.outcome
        try:
            campaign.run()
        except (TimeoutError, AssertionError) as error:
            found.wrong.append(f"broke off: {error}")
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(found.kills.items()))
    counts = f"{found.kills.total()} kills ({kinds}), {found.messages} messages"
    print(f"{setting}: {counts}: {'; '.join(found.wrong) or '0 lost, 0 doubled'}", flush=True)
    return not found.wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--seconds", type=float, default=12, help="of each of the five settings")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument(
        "--rate", type=float, default=0.0, help="messages a second; as many as the broker takes if 0"
    )
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds that a gateway may live longer, at most"
    )
    parser.add_argument(
        "--disk", type=int, default=0, metavar="RUNS", help="so many runs on a small disk instead"
    )
    given = parser.parse_args()
    if given.disk:
        return 0 if disk.campaign(given.seed, given.disk) else 1
    went_well = [
        run(Setting(given.seed + number, version, in_flight, given.seconds, given.rate, given.pause, rules))
        for number, (version, in_flight, rules) in enumerate(SETTINGS)
    ]
    return int(not all(went_well))


if __name__ == "__main__":
    sys.exit(main())

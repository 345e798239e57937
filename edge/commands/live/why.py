"""`penstock why RULE`: why a rule of a running gateway fired or did not, from its
journal of the last messages.

penstock why overheat --since 10m
penstock why overheat --key pump-07 --as-test
"""

from __future__ import annotations

import argparse
import json
from typing import Any
from urllib.parse import quote, urlencode

from edge.commands.shared import gateway_arguments
from edge.commands.shared.argument_types import add_format, duration

WORK_S = 125.0
"""The time in which the gateway goes through its journal, or gives up."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    gateway_arguments.add_gateway(parser)
    parser.add_argument("rule", metavar="RULE", help="the rule's id")
    parser.add_argument("--key", metavar="K", help="look only at groups with this key")
    parser.add_argument(
        "--since", type=duration, default=600_000, metavar="TIME", help="how far back (default 10m)"
    )
    parser.add_argument("--as-test", action="store_true", help="print the last events as an inline test")
    add_format(parser, "everything, as one object")


def run(arguments: argparse.Namespace) -> int:
    told = ask(arguments)
    if arguments.format == "json":
        print(json.dumps(told, ensure_ascii=False))
    elif arguments.as_test:
        print(told["test"], end="")
    else:
        from edge.monitor.flight.text import lines

        print("\n".join(lines(told)))
    return 0


def ask(arguments: argparse.Namespace) -> dict[str, Any]:
    """The gateway's answer. Raises UsageError where there is none."""
    query = {"since": str(arguments.since)}
    query |= {"key": arguments.key} if arguments.key is not None else {}
    query |= {"test": "1"} if arguments.as_test else {}
    path = f"/why/{quote(arguments.rule, safe='')}?{urlencode(query)}"
    found: dict[str, Any] = json.loads(gateway_arguments.client(arguments).page(path, WORK_S))
    return found

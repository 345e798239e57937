"""`penstock tap STREAM|RULE`: passing data as lines of JSON, until it is interrupted.

penstock tap m --where "temp > 80"       events of a stream, and its dead letters
penstock tap overheat                    rows of a rule, its late events, errors and dead letters
"""

from __future__ import annotations

import argparse
import sys
from urllib.parse import quote, urlencode

from edge.commands.shared import gateway_arguments
from edge.commands.shared.argument_types import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    gateway_arguments.add_gateway(parser)
    parser.add_argument("name", metavar="STREAM|RULE", help="what to listen to")
    parser.add_argument("--where", metavar="CONDITION", help="only events, or rows, that fulfil it")
    parser.add_argument("--count", type=count, metavar="N", help="end after so many lines")


def run(arguments: argparse.Namespace) -> int:
    query = "" if arguments.where is None else f"?{urlencode({'where': arguments.where})}"
    path = f"/tap/{quote(arguments.name, safe='')}{query}"
    with gateway_arguments.client(arguments).follow(path) as lines:
        for number, line in enumerate((line for line in lines if line.strip()), 1):
            sys.stdout.write(line.decode())
            sys.stdout.flush()
            if number == arguments.count:
                return 0
    print("penstock tap: the gateway has ended the connection", file=sys.stderr)
    return 1

"""`penstock health`: queries a running gateway; made for container health checks."""

from __future__ import annotations

import argparse

from edge.commands.shared import gateway_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    gateway_arguments.add_gateway(parser)
    parser.add_argument(
        "--ready", action="store_true", help="also demand that sources are connected and all rules run"
    )


def run(arguments: argparse.Namespace) -> int:
    path = "/readyz" if arguments.ready else "/healthz"
    status, text = gateway_arguments.client(arguments).get(path)
    print(text, end="")
    return 0 if status == 200 else 1

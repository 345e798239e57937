"""`penstock health`: queries a running gateway; made for container health checks."""

from __future__ import annotations

import argparse

from edge.monitor import client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    client.add_address_argument(parser)
    parser.add_argument(
        "--ready", action="store_true", help="also demand that sources are connected and all rules run"
    )


def run(arguments: argparse.Namespace) -> int:
    path = "/readyz" if arguments.ready else "/healthz"
    status, text = client.get(arguments.address, path, arguments.data)
    print(text, end="")
    return 0 if status == 200 else 1

"""`penstock ui`: open the page of a running gateway in the browser of this machine."""

from __future__ import annotations

import argparse
import webbrowser

from edge.base.errors import UsageError
from edge.monitor import client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    client.add_address_argument(parser)
    parser.add_argument(
        "--print", dest="only_print", action="store_true", help="print the address, with the token"
    )


def run(arguments: argparse.Namespace) -> int:
    status, text = client.get(arguments.address, "/ui", arguments.data)
    if status != 200:
        raise UsageError(
            f"{arguments.address} answered {status}: {text.strip()}; http.ui may be switched off"
        )
    url = f"http://{arguments.address}/ui#token={client.token(arguments.data) or ''}"
    if arguments.only_print or not webbrowser.open(url):
        print(url)
    return 0

"""`penstock ui`: open the page of a running gateway in the browser of this machine."""

from __future__ import annotations

import argparse
import webbrowser

from edge.base.errors import UsageError
from edge.commands.shared import gateway_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    gateway_arguments.add_gateway(parser)
    parser.add_argument(
        "--print", dest="only_print", action="store_true", help="print the address, with the token"
    )


def run(arguments: argparse.Namespace) -> int:
    client = gateway_arguments.client(arguments)
    status, text = client.get("/ui")
    if status != 200:
        raise UsageError(f"{client.address} answered {status}: {text.strip()}; http.ui may be switched off")
    client.page("/ui/log")  # without the token the page could not ask for anything either
    url = f"http://{client.address}/ui#token={client.token or ''}"
    if arguments.only_print or not webbrowser.open(url):
        print(url)
    return 0

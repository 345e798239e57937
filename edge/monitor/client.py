"""The command line's client of a running gateway: plain HTTP to the address of `http.bind`."""

from __future__ import annotations

import argparse
import http.client
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edge.base.errors import UsageError
from edge.monitor.access import read_token

TIMEOUT_S = 5.0

FOLLOW_TIMEOUT_S = 10.0
"""An endless page sends something, at least an empty line, every second."""

DEFAULT_DATA = "penstock-data"

DEFAULT_ADDRESS = "127.0.0.1:9620"


def add_address_argument(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select the gateway."""
    parser.add_argument(
        "--address",
        default=os.environ.get("PENSTOCK__HTTP__BIND", DEFAULT_ADDRESS),
        help="address:port of the gateway's HTTP server (default: that of the configuration, %(default)s)",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=Path(os.environ.get("PENSTOCK__DATA__DIR", DEFAULT_DATA)),
        help="the gateway's data directory, where its token is (default: that of the configuration, %(default)s)",
    )


def get(address: str, path: str, data: Path | None = None, timeout_s: float = TIMEOUT_S) -> tuple[int, str]:
    """Status and text of one page. Raises UsageError if the gateway does not answer."""
    with _asked(address, path, data, timeout_s) as response:
        try:
            return response.status, response.read().decode()
        except OSError as error:
            raise UsageError(f"{address} does not go on answering: {error}") from None


@contextmanager
def follow(address: str, path: str, data: Path | None = None) -> Iterator[Iterator[bytes]]:
    """The lines of a page that goes on for ever, an empty one at least every second. Raises UsageError for
    another status."""
    with _asked(address, path, data, FOLLOW_TIMEOUT_S) as response:
        if response.status != 200:
            raise UsageError(f"{address} answered {response.status}: {response.read().decode().strip()}")
        yield iter(response)


def token(data: Path | None) -> str | None:
    """The token of the environment, or the one that the gateway has put into its data directory."""
    return os.environ.get("PENSTOCK__HTTP__TOKEN") or (read_token(data) if data is not None else None)


@contextmanager
def _asked(
    address: str, path: str, data: Path | None, timeout_s: float
) -> Iterator[http.client.HTTPResponse]:
    """The answer of a gateway, while it is read. Raises UsageError if there is none."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdigit():
        raise UsageError(f"'{address}' is not an address; expected address:port")
    # A server bound to all addresses is reached on loopback.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    known = token(data)
    connection = http.client.HTTPConnection(host, int(port), timeout=timeout_s)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {known}"} if known else {})
        response = connection.getresponse()
    except OSError as error:
        connection.close()
        raise UsageError(
            f"no gateway answers at {address}: {error}; is it running, with this http.bind?"
        ) from None
    try:
        with response:
            yield response
    finally:
        connection.close()

"""Arguments that say which gateway a command means: flags, then the file of --config,
the environment, defaults."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from edge.base.environment import settings
from edge.base.errors import UsageError
from edge.monitor.access import read_token
from edge.monitor.client import ANSWER_S, GatewayClient

DEFAULT_DATA = "penstock-data"

DEFAULT_ADDRESS = "127.0.0.1:9620"


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names the configuration."""
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="the gateway's configuration, as given to penstock run"
    )


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the data directory."""
    add_config(parser)
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"the gateway's data directory (default: that of the configuration, {DEFAULT_DATA})",
    )


def add_gateway(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a running gateway; its token is in the data directory."""
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help=f"where the gateway's HTTP server is (default: that of the configuration, {DEFAULT_ADDRESS})",
    )
    add_data(parser)


def data_dir(arguments: argparse.Namespace) -> Path:
    """The gateway's data directory; it need not exist."""
    return Path(arguments.data or _settings(arguments.config).data)


def client(arguments: argparse.Namespace) -> GatewayClient:
    """A client of the running gateway. Raises UsageError if its configuration has no HTTP server."""
    found = _settings(arguments.config)
    address = arguments.address or found.address
    if address == "off":
        raise UsageError(
            "http.bind is off, so the gateway does not answer; set it, or name another with --address"
        )
    return GatewayClient(address, found.token or read_token(arguments.data or found.data), found.answer_s)


class _Settings(NamedTuple):
    data: Path
    address: str
    token: str | None
    answer_s: float = ANSWER_S


def _settings(path: Path | None) -> _Settings:
    """Those of the file; else of the environment, without the time that loading a configuration takes, since
    health checks of containers come here."""
    if path is None and (found := _plain_settings(os.environ)) is not None:
        return found
    from edge.config import load

    config = load(path)
    token = config.http.token
    answer_s = config.http.answer_timeout_ms / 1000
    return _Settings(config.data.dir, config.http.bind, token.reveal() if token else None, answer_s)


def _plain_settings(environment: Mapping[str, str]) -> _Settings | None:
    """The settings of an environment; None if one refers to a secret or must be checked."""
    given = {setting.key: setting.text for setting in settings(environment)}
    answer_ms = given.get(("http", "answertimeoutms"))
    if any("${" in text for text in given.values()) or not (answer_ms is None or answer_ms.isdecimal()):
        return None
    return _Settings(
        Path(given.get(("data", "dir"), DEFAULT_DATA)),
        given.get(("http", "bind"), DEFAULT_ADDRESS),
        given.get(("http", "token")),
        ANSWER_S if answer_ms is None else int(answer_ms) / 1000,
    )

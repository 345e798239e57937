"""Shared arguments of the commands that open a spool."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from edge.base.errors import UsageError
from edge.commands.shared import gateway_arguments
from edge.delivery.spools import ARCHIVE_FILE, RESULTS_FILE

if TYPE_CHECKING:
    from cloud_sync.records import Layout


def add_spool(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the place of the spool."""
    gateway_arguments.add_data(parser)
    parser.add_argument("--archive", action="store_true", help="the spool of archived events")


def add_gateway(parser: argparse.ArgumentParser) -> None:
    """Whose spool it is."""
    parser.add_argument(
        "--gateway-id", metavar="ID", help="the gateway's id (default: that of the configuration)"
    )


def spool_path(arguments: argparse.Namespace) -> Path:
    """The spool's file. Raises UsageError when there is none."""
    path = gateway_arguments.data_dir(arguments) / (ARCHIVE_FILE if arguments.archive else RESULTS_FILE)
    if not path.exists():
        raise UsageError(f"there is no spool at {path}; name the gateway's data directory with --data")
    return path


def layout(arguments: argparse.Namespace) -> Layout:
    """The place and form of the spool's rows in the bucket."""
    from cloud_sync.records import ARCHIVE, RESULTS

    return ARCHIVE if arguments.archive else RESULTS


def gateway_id(arguments: argparse.Namespace) -> str:
    """The id the spool belongs to."""
    from edge.config import load

    return str(arguments.gateway_id or load(arguments.config).gateway.id)

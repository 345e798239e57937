"""Shared arguments of the commands that open a spool, and the upload of all its rows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from edge.base.errors import UsageError
from edge.commands.shared import gateway_arguments
from edge.delivery.spools import ARCHIVE_FILE, RESULTS_FILE
from rules.problems import in_words

if TYPE_CHECKING:
    from cloud_sync.records import Layout


def add_spool(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the place of the spool."""
    gateway_arguments.add_data(parser)
    parser.add_argument("--archive", action="store_true", help="the spool of archived events")


def add_upload(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `upload`: whose spool it is, and where its rows go."""
    parser.add_argument(
        "--gateway-id", metavar="ID", help="the gateway's id (default: that of the configuration)"
    )
    parser.add_argument(
        "--sign-key",
        type=Path,
        metavar="FILE",
        help="file with the key that signs manifests (default: cloud.signKey of the configuration)",
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="directory or object store URL (default: cloud.target of the configuration)",
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


def upload(path: Path, arguments: argparse.Namespace) -> int:
    """Upload all rows of the spool at `path`, also those that were set aside; the number of rows. Raises
    UsageError, SpoolError, TargetError."""
    from cloud_sync import spool_tools
    from cloud_sync.errors import BadTarget
    from cloud_sync.targets import open_target
    from edge.clock import SystemClock
    from edge.config import load

    config = load(arguments.config)
    if (address := arguments.target or config.cloud.target) is None:
        raise UsageError("no TARGET is given, and the configuration has no cloud.target")
    try:
        target = open_target(address)
    except BadTarget as error:
        raise UsageError(str(error)) from None
    gateway = str(arguments.gateway_id or config.gateway.id)
    return spool_tools.replay(
        path, gateway, target, SystemClock().now_ms(), _sign_key(arguments), layout(arguments)
    )


def _sign_key(arguments: argparse.Namespace) -> str:
    """The key that signs manifests; empty for none. Raises UsageError."""
    from cloud_sync.signing import KEY_CHARS_MIN
    from edge.config import load

    file: Path | None = arguments.sign_key
    if file is None:
        key = load(arguments.config).cloud.sign_key
        return key.reveal() if key else ""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--sign-key: {in_words(error)}") from None
    if len(text) < KEY_CHARS_MIN:
        raise UsageError(f"--sign-key: {file} has less than {KEY_CHARS_MIN} characters")
    return text

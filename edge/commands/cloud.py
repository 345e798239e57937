"""`penstock cloud aggregate | upload-once`: what happens to spooled rows."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from edge.base.errors import MissingError, UsageError
from edge.commands.shared import spool_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    aggregate = verbs.add_parser("aggregate", help="merge uploaded files of all gateways into fleet tables, with Spark")
    aggregate.add_argument("bucket", metavar="BUCKET", help="directory or object store URL with the uploaded files")
    aggregate.add_argument("out", metavar="OUT", help="directory for the fleet tables (Parquet)")
    aggregate.add_argument("--checkpoint", metavar="DIR", help="what was already read (default OUT/_checkpoint)")
    aggregate.add_argument("--master", metavar="URL", help="Spark master (default: Spark's own setting, else local)")
    aggregate.add_argument("--show", action="store_true", help="print the fleet tables")
    aggregate.add_argument("--dry-run", action="store_true", help="verify every file and write nothing")
    aggregate.add_argument("--metrics", metavar="FILE", help="write the run's metrics there as one line of JSON")
    upload = verbs.add_parser("upload-once", help="upload everything in the spool of a stopped gateway")
    spool_arguments.add_data(upload)
    spool_arguments.add_gateway(upload)
    upload.add_argument("target", metavar="TARGET", help="directory or object store URL")


def run(arguments: argparse.Namespace) -> int:
    return aggregate(arguments) if arguments.verb == "aggregate" else upload_once(arguments)


def aggregate(arguments: argparse.Namespace) -> int:
    """The Spark job; its own exit codes: 0 ok, 1 failed, 2 something is in quarantine."""
    from importlib.util import find_spec

    if find_spec("pyspark") is None:
        raise MissingError("PySpark is not installed; install it with: pip install 'penstock[cloud]'")
    from cloud_sync.spark import job

    return job.main(
        arguments.bucket, arguments.out, checkpoint=arguments.checkpoint, master=arguments.master,
        show=arguments.show, dry_run=arguments.dry_run, metrics_file=arguments.metrics,
    )  # fmt: skip


def upload_once(arguments: argparse.Namespace) -> int:
    """Upload what waits, rows that were set aside included."""
    from cloud_sync import tools
    from cloud_sync.errors import BadTarget, SpoolError, TargetError
    from cloud_sync.targets import open_target
    from edge.clock import SystemClock

    path: Path = spool_arguments.spool_path(arguments)
    try:
        rows = tools.replay(
            path, spool_arguments.gateway_id(arguments), open_target(arguments.target), SystemClock().now_ms()
        )
    except BadTarget as error:
        raise UsageError(str(error)) from None
    except (SpoolError, TargetError) as error:
        print(f"penstock cloud upload-once: {error}", file=sys.stderr)
        return 1
    print(f"{rows} rows uploaded")
    return 0

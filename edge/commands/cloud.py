"""`penstock cloud`: the processing of spooled rows."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from edge.base.errors import MissingError, UsageError
from edge.commands.shared import reconciling, spool_arguments
from edge.commands.shared.argument_types import count, days, duration
from edge.commands.shared.spark_arguments import add_master, add_rules, chosen_rules


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    add_aggregate(
        verbs.add_parser(
            "aggregate", help="merge uploaded files of all gateways into fleet tables, with Spark"
        )
    )
    _add_upkeep(verbs)
    add_backfill(
        verbs.add_parser("backfill", help="run rules over raw events of the past, the engine itself in Spark")
    )
    add_stream(
        verbs.add_parser(
            "stream", help="run rules with scope: fleet over the archived events of all gateways"
        )
    )
    reconciling.add_arguments(
        verbs.add_parser("reconcile", help="compare rows of the gateways with those of a backfill")
    )
    upload = verbs.add_parser("upload-once", help="upload everything in the spool of a stopped gateway")
    spool_arguments.add_spool(upload)
    spool_arguments.add_upload(upload)


def _add_upkeep(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The commands that work on the tables alone."""
    compact = verbs.add_parser(
        "compact", help="write the tables in fewer files; delete what killed runs have left"
    )
    retain = verbs.add_parser(
        "retain", help="drop windows that are older than so many days, with their records"
    )
    forget = verbs.add_parser(
        "forget", help="take a gateway or a rule out of the tables, or only out of what is expected"
    )
    for verb in (compact, retain, forget):
        verb.add_argument("out", metavar="OUT", help="path of the tables")
        add_master(verb)
    report = verbs.add_parser(
        "report", help="write one static page: rules, gateways, files that do not count, runs"
    )
    report.add_argument("out", metavar="OUT", help="path of the tables")
    report.add_argument(
        "--html", type=Path, default=Path("fleet.html"), metavar="FILE", help="the page (fleet.html)"
    )
    add_master(report)
    retain.add_argument(
        "--keep",
        dest="days",
        type=days,
        required=True,
        metavar="TIME",
        help="what stays: so many days, such as 90d, today included",
    )
    forget.add_argument("gateway", metavar="GATEWAY", nargs="?", help="id of the gateway (all of them)")
    forget.add_argument(
        "--rule", metavar="RULE", help="id of a rule that was removed or renamed: forget it alone"
    )
    forget.add_argument(
        "--keep-records",
        action="store_true",
        help="records and windows stay; the reports expect nothing any more",
    )


def add_aggregate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "bucket", metavar="BUCKET", help="path of the uploaded files, local or a URL that Spark can read"
    )
    parser.add_argument("out", metavar="OUT", help="path for the tables, local or a URL that Spark can write")
    add_master(parser)
    parser.add_argument("--show", action="store_true", help="print the fleet tables")
    parser.add_argument("--dry-run", action="store_true", help="verify every file and write nothing")
    parser.add_argument(
        "--format",
        choices=("parquet", "delta"),
        default="parquet",
        help="delta: keep the fleet as a Delta table too, in OUT/delta/fleet",
    )
    parser.add_argument(
        "--retain",
        type=days,
        metavar="TIME",
        help="drop days that are older than so many, such as 90d, afterwards",
    )
    parser.add_argument(
        "--lookback",
        type=duration,
        default="1h",
        metavar="TIME",
        help="how long before the last run an hour of uploads is looked at again (1h); "
        "older ones have their turn",
    )
    parser.add_argument(
        "--all", action="store_true", help="look at the whole bucket, also at files that nothing announces"
    )
    parser.add_argument("--metrics", metavar="FILE", help="write the run's metrics there as one line of JSON")
    parser.add_argument(
        "--keys",
        type=_keys,
        metavar="FILE",
        help=(
            "JSON object of gateway ids and the keys that sign their manifests: "
            "what they did not sign does not count"
        ),
    )


def add_backfill(parser: argparse.ArgumentParser) -> None:
    add_rules(parser)
    parser.add_argument(
        "raw", metavar="RAW", help="path with gw=<gateway>/*.jsonl[.gz]: at, stream and event a line"
    )
    parser.add_argument("out", metavar="OUT", help="new folder: one Parquet table for each rule")
    parser.add_argument(
        "--open",
        action="store_true",
        help="leave windows open at the end and keep the state in OUT, for --after",
    )
    parser.add_argument(
        "--after",
        metavar="OUT",
        help="go on from the state of a backfill with --open, with the files behind it",
    )


def add_stream(parser: argparse.ArgumentParser) -> None:
    add_rules(parser)
    parser.add_argument(
        "raw", metavar="RAW", help="path with gw=<gateway>/…, what the action archive has uploaded"
    )
    parser.add_argument("out", metavar="OUT", help="path of the tables, one for each rule, and of the states")
    parser.add_argument(
        "--files",
        type=count,
        default=1_000,
        metavar="N",
        help="files of one batch (1000): memory follows it",
    )
    parser.add_argument(
        "--delay",
        type=duration,
        default="1h",
        metavar="TIME",
        help="how far the time of keys without events stays behind the newest event of the fleet (1h)",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.verb == "upload-once":
        return upload_once(arguments)
    if arguments.verb == "forget" and not (arguments.gateway or arguments.rule):
        raise UsageError("forget: name a GATEWAY, a rule with --rule, or both")
    from importlib.util import find_spec

    if find_spec("pyspark") is None:
        raise MissingError("PySpark is not installed; install it with: pip install 'penstock[cloud]'")
    if arguments.verb == "aggregate":
        return aggregate(arguments)
    if arguments.verb == "reconcile":
        return reconciling.run(arguments)
    jobs = {"backfill": backfill, "stream": stream, "report": report}
    return _printed(jobs.get(arguments.verb, maintain), arguments)


def _printed(work: Callable[[argparse.Namespace], str], arguments: argparse.Namespace) -> int:
    """Run one of the Spark jobs and print its result, or why it failed; gives the exit code."""
    from cloud_sync.spark import job
    from cloud_sync.spark.backfill import BackfillError

    try:
        print(work(arguments))
    except (job.JobError, BackfillError) as error:
        print(f"penstock cloud {arguments.verb}: {error}", file=sys.stderr)
        return job.FAILED
    return job.OK


def _keys(path: str) -> dict[str, str]:
    from cloud_sync.signing import read_keys
    from rules.problems import in_words

    try:
        return read_keys(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{path}: {in_words(error, with_file=False)}") from None


def aggregate(arguments: argparse.Namespace) -> int:
    """The Spark job; its own exit codes: 0 ok, 1 failed, 2 something is in quarantine or conflicts."""
    from cloud_sync.spark import job
    from edge.clock import SystemClock

    options = job.Options(
        SystemClock().now_ms,
        master=arguments.master,
        show=arguments.show,
        dry_run=arguments.dry_run,
        metrics_file=arguments.metrics,
        delta=arguments.format == "delta",
        keys=arguments.keys,
        retain_days=arguments.retain,
        lookback_ms=arguments.lookback,
        everything=arguments.all,
    )
    return job.main(arguments.bucket, arguments.out, options)


def backfill(arguments: argparse.Namespace) -> str:
    """The engine over raw events; gives the rows of each rule as JSON."""
    from cloud_sync.spark import job
    from cloud_sync.spark.backfill import Cut
    from cloud_sync.spark.backfill import backfill as run_rules

    rules, sources = list(chosen_rules(arguments)), _sources(arguments.rules)
    with job.opened(arguments.master) as spark:
        cut = Cut(arguments.after, arguments.open)
        counts = run_rules(spark, sources, rules, arguments.raw, arguments.out, arguments.zone, cut)
    return json.dumps(counts)


def stream(arguments: argparse.Namespace) -> str:
    """The rules over the fleet on the events that are new; gives the new rows of each rule as JSON."""
    from cloud_sync.spark import job
    from cloud_sync.spark.streaming import Pace
    from cloud_sync.spark.streaming import stream as run_rules
    from edge.clock import SystemClock

    rules, sources = list(chosen_rules(arguments, of_fleet=True)), _sources(arguments.rules)
    pace, out = Pace(arguments.files, arguments.delay), arguments.out
    with job.opened(arguments.master) as spark, job.leased(spark, out, SystemClock().now_ms):
        counts = run_rules(spark, sources, rules, arguments.raw, out, arguments.zone, pace)
    return json.dumps(counts)


def _sources(path: Path) -> list[tuple[str, str]]:
    """The texts of a rule file and its neighbours, which may define its streams, or of a directory."""
    from rules.source.directory import rule_files

    files = rule_files(path if path.is_dir() else path.parent)
    return [(file.read_text("utf-8"), str(file)) for file in files if file.is_file()]


def report(arguments: argparse.Namespace) -> str:
    """Write the page about the fleet; gives where it is."""
    from cloud_sync.spark import job

    with job.opened(arguments.master) as spark:
        from cloud_sync.spark.report import page

        job.check_made(spark, arguments.out)
        arguments.html.write_text(page(spark, arguments.out), encoding="utf-8")
    return f"written to {arguments.html}"


def maintain(arguments: argparse.Namespace) -> str:
    """One of the commands that change the tables without new files; gives how much it changed."""
    from cloud_sync.spark import job, maintenance
    from edge.clock import SystemClock

    now_ms, out = SystemClock().now_ms, arguments.out
    with job.opened(arguments.master) as spark:
        job.check_made(spark, out)
        if arguments.verb == "compact":
            return f"{maintenance.compact(spark, out, now_ms)} partitions compacted"
        if arguments.verb == "retain":
            return f"{maintenance.retain(spark, out, arguments.days, now_ms)} partitions dropped"
        of = maintenance.Forgotten(arguments.gateway, arguments.rule, arguments.keep_records)
        count = maintenance.forget(spark, out, of, now_ms)
        if of.keeps_records:
            return f"{count} spools and rules left the reports; their records stay"
        return f"{count} records forgotten"


def upload_once(arguments: argparse.Namespace) -> int:
    """Upload all waiting rows, including those set aside."""
    from cloud_sync.errors import SpoolError, TargetError

    try:
        rows = spool_arguments.upload(spool_arguments.spool_path(arguments), arguments)
    except (SpoolError, TargetError) as error:
        print(f"penstock cloud upload-once: {error}", file=sys.stderr)
        return 1
    print(f"{rows} rows uploaded")
    return 0

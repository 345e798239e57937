"""`penstock cloud reconcile`: windows of the gateways beside those of a backfill, and why they differ."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from edge.base.errors import UsageError
from edge.commands.shared.argument_types import add_format, count
from edge.commands.shared.spark_arguments import add_rules, chosen_rules

if TYPE_CHECKING:
    from cloud_sync.declaration import CloudSettings
    from cloud_sync.spark.reconciling.comparison import Comparison
    from rules.compiled import CompiledRule

EQUAL, FAILED, DIFFERENT = 0, 1, 2
"""Exit codes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_rules(parser)
    parser.add_argument("backfill", metavar="BACKFILL", help="what penstock cloud backfill has written")
    parser.add_argument("out", metavar="OUT", help="path of the tables of penstock cloud aggregate")
    parser.add_argument(
        "--limit",
        type=count,
        default=20,
        metavar="N",
        help="list so many windows of a rule (20); all are counted",
    )
    add_format(parser, "one line")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0 if all windows are equal, 2 if some differ, 1 if they could not be compared."""
    from cloud_sync.spark import job

    rules = {name: rule for name, rule in chosen_rules(arguments).items() if _clouds(rule)}
    if not rules:
        raise UsageError("none of the rules has a cloud action; only rows of cloud actions are compared")
    declared = {name: (rule.plan, _settings(rule)) for name, rule in rules.items()}
    try:
        with job.opened(arguments.master) as spark:
            from cloud_sync.spark.reconciling.comparison import ReconcileError, reconcile

            try:
                found = reconcile(spark, declared, arguments.backfill, arguments.out, arguments.limit)
            except ReconcileError as error:
                raise job.JobError(str(error)) from None
    except job.JobError as error:
        print(f"penstock cloud reconcile: {error}", file=sys.stderr)
        return FAILED
    if arguments.format == "json":
        print(json.dumps([asdict(one) for one in found]))
    else:
        print("\n".join(text for one in found for text in _plain(one)))
    return DIFFERENT if any(one.differ for one in found) else EQUAL


def _clouds(rule: CompiledRule) -> list[CloudSettings]:
    from cloud_sync.declaration import CloudSettings

    return [action.settings for action in rule.actions if isinstance(action.settings, CloudSettings)]


def _settings(rule: CompiledRule) -> CloudSettings:
    """The cloud action of a rule. Raises UsageError if its rows cannot be made again from
    those of the SELECT."""
    settings, *others = _clouds(rule)
    place = f"{rule.path}: rule {rule.id}"
    if others:
        raise UsageError(
            f"{place} has several cloud actions, whose records cannot be told apart; leave one of them in"
        )
    if settings.data_template is not None or settings.data_field is not None:
        raise UsageError(
            f"{place}: 'dataTemplate' and 'dataField' of the cloud action replace the columns of the SELECT"
        )
    if settings.hashed:
        raise UsageError(
            f"{place} hashes keys with a key that stays on the gateways; its windows cannot be compared"
        )
    return settings.model_copy(update={"hash_key": None})  # secrets are not sent to Spark's workers


def _plain(found: Comparison) -> Iterator[str]:
    from cloud_sync.spark.reconciling.reasons import REASONS

    yield f"rule {found.rule}: {found.equal:,} windows equal, {found.differ:,} differ"
    if found.refused:
        yield (
            f"  {found.refused:,} rows of the backfill do not fit the cloud action: "
            "dead letters of the gateways"
        )
    for name, number in found.reasons.items():
        yield f"  {number:>7,}  {name}: {REASONS[name]}"
    for row in found.listed:
        yield f"  {row['gateway']}  {_span(row)}  {row['keys']}  {row['reason']}" + (
            f": {row['detail']}" if row["detail"] else ""
        )
        yield f"    gateway:  {_values(row['edge'])}"
        yield f"    backfill: {_values(row['backfilled'])}"
    if found.differ > len(found.listed):
        yield f"  and {found.differ - len(found.listed):,} more (--limit)"


def _span(row: dict[str, Any]) -> str:
    return f"{_instant(row['window_start'])} to {_instant(row['window_end'])}"


def _instant(instant_ms: int) -> str:
    at = datetime.fromtimestamp(instant_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds" if instant_ms % 1000 else "seconds").replace("+00:00", "Z")


def _values(told: str | None) -> str:
    """The values of one side: `n 10, temp_sum 41.0`."""
    if told is None:
        return "no row"
    values = json.loads(told)
    return (
        ", ".join(f"{value['as']} {value.get('value', 'NULL')}" for value in values) or "a row without values"
    )

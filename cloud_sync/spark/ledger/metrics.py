"""The counters of a batch and of a run, and what of them an operator has to know."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rules.problems import in_words

RUN_COUNTERS = ("files", "rows", "quarantined", "duplicates", "conflicting", "expired", "held")


@dataclass(slots=True)
class Counts:
    """The counters of a batch. `conflicting` records share an identity but differ (`ledger.identities`);
    `copied` are their gateways. `expired` ones lie before the day from which the tables are kept. `held` ones
    break a check that keeps them out; `failed` are checks that fail the run."""

    files: int = 0
    rows: int = 0
    quarantined: int = 0
    duplicates: int = 0
    conflicting: int = 0
    expired: int = 0
    held: int = 0
    failed: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Metrics(Counts):
    """The counters of one run. `twins` are gateways of whose spools two were in use at one time: two machines
    under one id; `copied` are those of conflicting records: their disk was copied, or restored from an older
    copy. `stale` are the gateways whose rows of a rule are older than a check of it allows."""

    run: str = ""
    version: int = 0
    batches: int = 0
    stale: list[str] = field(default_factory=list)
    twins: list[str] = field(default_factory=list)

    def add(self, counts: Counts) -> None:
        """Add the counters of a batch."""
        self.failed += counts.failed
        self.copied = sorted({*self.copied, *counts.copied})
        for name in RUN_COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(counts, name))


def write(metrics: Metrics, file: str | None) -> bool:
    """Write the metrics as a line of JSON to a file, or else to standard output; False if the file cannot be
    written."""
    report = json.dumps(asdict(metrics), sort_keys=True)
    try:
        if file is not None:
            Path(file).write_text(report + "\n", encoding="utf-8")
            return True
    except OSError as error:
        print(f"penstock cloud aggregate: the run ended, but --metrics: {in_words(error)}", file=sys.stderr)
    print(report)
    return file is None


def noteworthy(metrics: Metrics, out: str, dry_run: bool) -> Iterator[str]:
    """A sentence with the numbers of files and records that do not count, and the command that lists the
    reasons; and one each with the gateways of conflicting records, with those of which two machines send,
    and with those that are behind."""
    if metrics.quarantined or metrics.held:
        counted = f"files that do not count: {metrics.quarantined}, records: {metrics.held}"
        yield counted if dry_run else f"{counted}; see why with: penstock cloud report {out}"
    if metrics.conflicting:
        yield (
            f"conflicting records: {metrics.conflicting}, of gateways {', '.join(metrics.copied)}: each has "
            "the number of another record and another content, and one of the two counts; "
            "a disk was copied or restored from an older copy; "
            "give the gateway that runs on the copy a new gateway.id"
        )
    if metrics.twins:
        yield (
            f"two machines at a time send as gateway {', '.join(metrics.twins)}: "
            "give each a gateway.id of its own"
        )
    if metrics.stale:
        yield (
            f"rows are older than `freshness` of their rule allows: {', '.join(metrics.stale)}; "
            "see that these gateways run and upload; if a rule was removed or renamed: "
            f"penstock cloud forget {out} --rule RULE --keep-records"
        )

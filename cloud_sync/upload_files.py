"""Form the files that gateways upload for the cloud job; docs/cloud.md describes the contract.

A data file counts only once its manifest exists; the manifest is written last. Equal rows give equal bytes
and an equal name, always (`cloud_sync.names`).
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Sequence

import msgspec

from cloud_sync.names import VERSION
from cloud_sync.records import RESULTS, Layout, SpooledRow
from cloud_sync.signing import FIELD, signature
from cloud_sync.spool.types import PlannedFile


def form_file(
    rows: Sequence[SpooledRow], gateway: str, spool_id: str, layout: Layout = RESULTS
) -> tuple[PlannedFile, bytes]:
    """The file of `rows` (all of one rule, date and schema): equal rows give equal bytes and
    an equal name, always."""
    content = gzip.compress(b"".join(layout.line(row, gateway, spool_id) for row in rows), mtime=0)
    digest = hashlib.sha256(content).hexdigest()
    first, last = rows[0], rows[-1]
    name = layout.file(gateway, first.rule, first.date, first.seq, last.seq, digest)
    planned = PlannedFile(
        name, first.rule, first.date, first.seq, last.seq, len(rows), len(content), digest, first.schema
    )
    return planned, content


def manifest(planned: PlannedFile, gateway: str, spool_id: str, sign_key: str = "") -> bytes:
    """The manifest by which the job checks a data file: one line of JSON. It depends only on the plan and on
    the key that signs it."""
    fields: dict[str, object] = {
        "version": VERSION,
        "name": planned.name,
        "sha256": planned.sha256,
        "bytes": planned.bytes,
        "rows": planned.rows,
        "gateway": gateway,
        "spool": spool_id,
        "rule": planned.rule,
        "date": planned.date,
        "first_seq": planned.first_seq,
        "last_seq": planned.last_seq,
    }
    if planned.schema:
        fields["rule_hash"], _, fields["schema"] = planned.schema.partition("-")
    if sign_key:
        fields[FIELD] = signature(fields, sign_key)
    return msgspec.json.encode(fields) + b"\n"

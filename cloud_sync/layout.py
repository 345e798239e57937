"""The layout of the bucket: version 1 of the contract between gateways and the cloud job.

    v1/gw=<gateway>/rule=<rule>/date=<utc date>/<first seq>-<last seq>-<sha256 prefix>.jsonl.gz
    v1-manifests/gw=<gateway>/rule=<rule>/date=<utc date>/<first seq>-<last seq>-<sha256 prefix>.json

A data file counts only once its manifest exists; the manifest is written last. Names derive from sequence numbers and
content, never from the time or from chance, and are never used twice. The version comes first because a level added
deeper would break readers of partition folders.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Sequence

import msgspec

from cloud_sync.records import SpooledRow, line
from cloud_sync.spool import PlannedFile

DATA = "v1"
MANIFESTS = "v1-manifests"
DATA_SUFFIX = ".jsonl.gz"
MANIFEST_SUFFIX = ".json"

_UNSAFE = re.compile(rb"[^A-Za-z0-9._-]")


def safe(text: str) -> str:
    """`text` as one path element that no file system, URL or partition reader changes: other bytes become `~xx`.

    >>> safe("hot/pump 7"), safe("..")
    ('hot~2fpump~207', '~2e~2e')
    """
    if text.strip(".") == "":
        return "".join(f"~{byte:02x}" for byte in text.encode())
    return _UNSAFE.sub(lambda match: b"~%02x" % match[0][0], text.encode()).decode()


def form_file(rows: Sequence[SpooledRow], gateway: str, spool_id: str) -> tuple[PlannedFile, bytes]:
    """The file of `rows` (all of one rule and date): equal rows give equal bytes and an equal name, always."""
    content = gzip.compress(b"".join(line(row, gateway, spool_id) for row in rows), mtime=0)
    digest = hashlib.sha256(content).hexdigest()
    first, last = rows[0], rows[-1]
    folder = f"{DATA}/gw={safe(gateway)}/rule={safe(first.rule)}/date={safe(first.date)}"
    name = f"{folder}/{first.seq}-{last.seq}-{digest[:16]}{DATA_SUFFIX}"
    return PlannedFile(name, first.rule, first.date, first.seq, last.seq, len(rows), len(content), digest), content


def manifest_name(data_name: str) -> str:
    """The name of the manifest of a data file.

    >>> manifest_name("v1/gw=a/rule=r/date=2026-11-21/1-9-ab.jsonl.gz")
    'v1-manifests/gw=a/rule=r/date=2026-11-21/1-9-ab.json'
    """
    return MANIFESTS + data_name.removeprefix(DATA).removesuffix(DATA_SUFFIX) + MANIFEST_SUFFIX


def manifest(planned: PlannedFile, gateway: str, spool_id: str) -> bytes:
    """What the job checks a data file against: one line of JSON. It depends on the plan alone."""
    fields = {
        "version": 1,
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
    return msgspec.json.encode(fields) + b"\n"

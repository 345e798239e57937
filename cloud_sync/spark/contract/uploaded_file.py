"""The check of an uploaded file: a pure function from bytes to records, or to the reason why there are none.

No upload can stop a run: a file that differs from its manifest, or holds one line that is no record of the
contract, goes to quarantine as a whole, and the files beside it count. Every range of the contract is checked
here, so that nothing behind has to. It needs only the standard library: it runs in Spark's workers.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cloud_sync.names import VERSIONS_READ, file_folder, manifest_name, safe, utc_date
from cloud_sync.schemas import Check, Schema, is_id
from cloud_sync.signing import FIELD, is_signed
from cloud_sync.spark.contract.declared import broken_checks, check_fit, declared
from cloud_sync.spark.contract.fields import (
    LAST_MS,
    NAME_CHARS_MAX,
    Bad,
    check_number,
    check_text,
    text,
    whole,
)
from cloud_sync.spark.contract.values import UploadedValue, values_of

FILE_BYTES_MAX = 256 << 20
"""The largest size of a data file, compressed and not."""
MANIFEST_BYTES_MAX = 64 << 10
WINDOW_MS_MAX = 100 * 366 * 86_400_000
FOLDER_CHARS_MAX = 200
"""The name of a rule as a folder; file systems take 255 bytes."""
LEVELS_MAX, KEYS_MAX, KEY_CHARS_MAX = 16, 100, 65_536

_SHA256 = re.compile(r"[0-9a-f]{64}")
_LEVEL = re.compile(r"[A-Za-z0-9]{1,32}")
_HASH = re.compile(r"[0-9a-f]{16}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class Span(NamedTuple):
    """The fleet window of one level that a record belongs to: [start, end) in
    milliseconds since the epoch."""

    level: str
    start: int
    end: int


class UploadedRecord(NamedTuple):
    """One record. `digest` is equal for records that say the same, whatever their spelling.

    `revision` above 0: it states its window (gateway, rule, bounds, keys) instead of every record with a
    smaller one; `retracted`: it only takes back what was stated. `rule_hash`: the version of the rule, empty
    if the file does not name it. `broken`: the checks of its schema that it breaks.
    """

    seq: int
    window_start: int
    window_end: int
    windows: tuple[Span, ...]
    keys: str
    values: tuple[UploadedValue, ...]
    revision: int
    retracted: bool
    rule_hash: str
    digest: str
    broken: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """The announcement of a data file. `schema` is the id of its schema; empty for none."""

    version: int
    name: str
    sha256: str
    bytes: int
    rows: int
    gateway: str
    spool: str
    rule: str
    date: str
    first_seq: int
    last_seq: int
    rule_hash: str = ""
    schema: str = ""


def read_file(
    path: str,
    announcement: bytes | None,
    content: bytes | None,
    keys: Mapping[str, str] | None = None,
    declaration: bytes | None = None,
) -> tuple[Manifest, list[UploadedRecord]]:
    """The manifest at `path` below the bucket and the records of its file.
    `keys` of gateways: only manifests that they signed count.
    `declaration`: the file of the schema that the manifest names. Raises Bad with the reason."""
    manifest = read_manifest(path, announcement, keys)
    if content is None:
        raise Bad("the file is not there")
    if len(content) != manifest.bytes:
        raise Bad(f"the file has {len(content)} bytes, the manifest says {manifest.bytes}")
    digest = hashlib.sha256(content).hexdigest()
    if digest != manifest.sha256:
        raise Bad(f"sha256 is {digest}, the manifest says {manifest.sha256}")
    lines = _unpacked(content).split(b"\n")
    if lines.pop():
        raise Bad("the last line does not end")
    if len(lines) != manifest.rows:
        raise Bad(f"{len(lines)} records, the manifest says {manifest.rows}")
    schema = (
        declared(manifest.rule, manifest.rule_hash, manifest.schema, declaration) if manifest.schema else None
    )
    records: list[UploadedRecord] = []
    before = manifest.first_seq - 1
    for number, line in enumerate(lines, 1):
        try:
            record = read_record(line, manifest, schema)
            if not before < record.seq <= manifest.last_seq:
                raise Bad(f"'seq' {record.seq} is out of order or out of the range of the manifest")
        except Bad as reason:
            raise Bad(f"line {number} is no record: {reason}") from None
        before = record.seq
        records.append(record)
    return manifest, records


def read_manifest(path: str, announcement: bytes | None, keys: Mapping[str, str] | None = None) -> Manifest:
    """The manifest at `path` below the bucket, signed if there are `keys`. Raises Bad with the reason."""
    if announcement is None:
        raise Bad("there is no manifest (yet); the gateway's next upload brings it")
    if not announcement:
        raise Bad("the manifest is empty: it was damaged in the bucket")
    try:
        fields = _object(announcement)
        manifest = Manifest(
            version=whole(fields, "version", 1),
            name=text(fields, "name"),
            sha256=text(fields, "sha256"),
            bytes=whole(fields, "bytes", 0),
            rows=whole(fields, "rows", 0),
            gateway=text(fields, "gateway"),
            spool=text(fields, "spool"),
            rule=text(fields, "rule"),
            date=text(fields, "date"),
            first_seq=whole(fields, "first_seq", 0),
            last_seq=whole(fields, "last_seq", 0),
            **{name: text(fields, name) for name in ("rule_hash", "schema") if name in fields},
        )
    except Bad as reason:
        raise Bad(f"the manifest is no manifest: {reason}") from None
    if keys is not None:
        _check_signature(fields, manifest.gateway, keys)
    if manifest.version not in VERSIONS_READ:
        raise Bad(
            f"the manifest has version {manifest.version}, this job knows {VERSIONS_READ}; update penstock"
        )
    if not _SHA256.fullmatch(manifest.sha256) or not _DATE.fullmatch(manifest.date):
        raise Bad("the manifest is no manifest: 'sha256' or 'date' is not in its form")
    if not manifest.first_seq <= manifest.last_seq or not manifest.rows:
        raise Bad("the manifest is no manifest: it announces no rows")
    if not all(map(is_id, filter(None, (manifest.rule_hash, manifest.schema)))):
        raise Bad("the manifest is no manifest: 'rule_hash' or 'schema' is not in its form")
    if len(safe(manifest.rule)) > FOLDER_CHARS_MAX:
        raise Bad(f"the rule's name is longer than {FOLDER_CHARS_MAX} characters as a folder")
    folder = file_folder(manifest.gateway, manifest.rule, manifest.date, manifest.version)
    if manifest_name(manifest.name) != path or manifest.name.rpartition("/")[0] != folder:
        raise Bad(f"the manifest lies at {path}, which is not its file's place")
    return manifest


def _check_signature(fields: Mapping[str, Any], gateway: str, keys: Mapping[str, str]) -> None:
    if gateway not in keys:
        raise Bad("there is no key of its gateway")
    if not is_signed(fields, keys[gateway]):
        wrong = "bears another signature" if FIELD in fields else "is not signed"
        raise Bad(f"the manifest {wrong}; its gateway has a key")


def _unpacked(content: bytes) -> bytes:
    """The content of a gzip file of one member, up to the bound."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(content, FILE_BYTES_MAX)
    except zlib.error as error:
        raise Bad(f"it is no gzip file: {error}") from None
    if unpacker.unconsumed_tail:
        raise Bad(f"it holds more than {FILE_BYTES_MAX} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise Bad("its gzip stream is torn")
    return text


def _object(text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Bad("it is no JSON") from None
    if not isinstance(found, dict):
        raise Bad("it is no JSON object")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def read_record(line: bytes, manifest: Manifest, schema: Schema | None = None) -> UploadedRecord:
    """The record in one line of the file that `manifest` announces, which fits the schema that it names.
    Raises Bad with the reason."""
    fields = _object(line)
    origin = tuple(text(fields, name) for name in ("gateway", "spool", "rule"))
    if origin != (manifest.gateway, manifest.spool, manifest.rule):
        raise Bad("it is of another gateway, spool or rule than the manifest says")
    start, end = whole(fields, "window_start", 0, LAST_MS), whole(fields, "window_end", 0, LAST_MS)
    if end < start:
        raise Bad("'window_end' lies before 'window_start'")
    windows = _windows(fields, start)
    if utc_date(windows[0].start) != manifest.date:
        raise Bad(f"its fleet window is not of {manifest.date}, as the manifest says")
    keys, values = _keys(fields.get("keys")), values_of(fields.get("values"))
    revision, retracted = _revision(fields)
    if schema is not None:
        check_fit(fields, values, schema)
    digested = [value.digested() for value in values]
    content = json.dumps(
        [start, end, windows, keys, digested, *([revision, retracted] if revision else [])],
        separators=(",", ":"),
    )
    digest = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
    made_by = text(fields, "rule_hash") if "rule_hash" in fields else ""
    if made_by and not _HASH.fullmatch(made_by):
        raise Bad("'rule_hash' is not 16 hexadecimal digits")
    seq = whole(fields, "seq", 0)
    broken = broken_checks(fields, schema)
    return UploadedRecord(
        seq, start, end, windows, keys, values, revision, retracted, made_by, digest, broken
    )


def _revision(fields: Mapping[str, Any]) -> tuple[int, bool]:
    """The revision of a record's window, and True if the record takes the window back."""
    revision = whole(fields, "revision", 0) if "revision" in fields else 0
    retracted = fields.get("retracted", False)
    if not isinstance(retracted, bool):
        raise Bad("'retracted' is no boolean")
    if retracted and not revision:
        raise Bad("a record that takes its window back needs a 'revision'")
    return revision, retracted


def _windows(fields: Mapping[str, Any], start: int) -> tuple[Span, ...]:
    """The fleet windows of all levels; version 1 has one, `window` ms long, at its
    multiples since the epoch."""
    if "windows" not in fields:
        length = whole(fields, "window", 1, WINDOW_MS_MAX)
        first = start - start % length
        return (_span([_label(length), first, first + length], start),)
    listed = fields["windows"]
    if not isinstance(listed, list) or not 1 <= len(listed) <= LEVELS_MAX:
        raise Bad("'windows' is no list of levels")
    spans = tuple(_span(item, start) for item in listed)
    if len({span.level for span in spans}) < len(spans):
        raise Bad("'windows' names a level twice")
    return spans


def _span(item: object, start: int) -> Span:
    if not isinstance(item, list) or len(item) != 3:
        raise Bad("'windows' is no list of [level, start, end]")
    fields = {"level": item[0], "start": item[1], "end": item[2]}
    span = Span(text(fields, "level"), whole(fields, "start", 0, LAST_MS), whole(fields, "end", 1, LAST_MS))
    if not _LEVEL.fullmatch(span.level):
        raise Bad("the name of a level is a length such as 1m, 1d or 1mo")
    if not span.start <= start < span.end or span.end - span.start > WINDOW_MS_MAX:
        raise Bad("a fleet window does not hold the record's start")
    return span


def _label(length_ms: int) -> str:
    """The name of a level of version 1: as `rules.durations.format_duration` writes a length."""
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)):
        count, length_ms = divmod(length_ms, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts)


def _keys(found: object) -> str:
    """The keys in one spelling, as JSON."""
    if not isinstance(found, dict) or len(found) > KEYS_MAX:
        raise Bad("'keys' is no object of keys")
    for name, value in found.items():
        check_text(name, "a key's name", NAME_CHARS_MAX, empty=False)
        if isinstance(value, str):
            check_text(value, f"key '{name}'", KEY_CHARS_MAX)
        elif value is not None and not isinstance(value, bool):
            check_number(value, f"key '{name}'")
    return json.dumps(found, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

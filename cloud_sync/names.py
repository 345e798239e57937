"""The names of uploaded files, which gateways write and the cloud job reads.

    v2/gw=<gateway>/rule=<rule>/date=<utc date>/<first seq>-<last seq>-<sha256 prefix>.jsonl.gz
    v2-arrivals/day=<utc day>/hour=<hour>/gw=<gateway>/rule=<rule>/date=<utc date>/<as the file>.json
    v2-schemas/rule=<rule>/<rule hash>-<schema>.json
    v2-heartbeats/gw=<gateway>/<spool>.json
    v2-archive/gw=<gateway>/date=<utc date>/<first seq>-<last seq>-<sha256 prefix>.jsonl.gz
    v2-archive-heartbeats/gw=<gateway>/<spool>.json

The version comes first because a level added deeper would break readers of partition folders. Names derive
from sequence numbers and content, never from chance, and are never used twice; heartbeats alone are replaced.
Manifests alone lie by the hour of their upload, so that the job finds new ones without listing old ones. The
job knows each by a name without the hour (`manifest_name`), so two of one file are one to it. This module
needs nothing but the standard library: Spark's workers import it.
"""

from __future__ import annotations

import datetime
import re

VERSION = 2
"""The version that gateways write."""

VERSIONS_READ = (1, 2)
"""The versions that the job reads."""

ARRIVALS_FOLDER = f"v{VERSION}-arrivals"
"""The folder of all manifests that lie by the hour of their upload."""
SCHEMAS_FOLDER = f"v{VERSION}-schemas"
"""The folder of all schemas."""
HEARTBEATS_FOLDER = f"v{VERSION}-heartbeats"
"""The folder of all heartbeats."""
ARCHIVE_FOLDER = f"v{VERSION}-archive"
"""The folder of all archived events."""

DATA_SUFFIX = ".jsonl.gz"
MANIFEST_SUFFIX = ".json"

_EPOCH = datetime.date(1970, 1, 1)

_UNSAFE = re.compile(rb"[^A-Za-z0-9._-]")
_ESCAPED = re.compile(rb"~([0-9a-f]{2})")


def safe(text: str) -> str:
    """`text` as one path element that no file system, URL or partition reader changes:
    other bytes become `~xx`.

    >>> safe("hot/pump 7"), safe("..")
    ('hot~2fpump~207', '~2e~2e')
    """
    if text.strip(".") == "":
        return "".join(f"~{byte:02x}" for byte in text.encode())
    return _UNSAFE.sub(lambda match: b"~%02x" % match[0][0], text.encode()).decode()


def original(element: str) -> str:
    """The text of which `safe` made a path element.

    >>> original("hot~2fpump~207")
    'hot/pump 7'
    """
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), element.encode()).decode(errors="replace")


def utc_date(instant_ms: int) -> str:
    """The UTC date of an instant of the years 1 to 9999. Raises OverflowError for others.

    >>> utc_date(1_763_683_200_000)
    '2025-11-21'
    """
    return (_EPOCH + datetime.timedelta(days=instant_ms // 86_400_000)).isoformat()


def data_folder(version: int = VERSION) -> str:
    """The folder of all data files of a version of the contract."""
    return f"v{version}"


def manifest_folder(version: int = VERSION) -> str:
    """The folder of all manifests that do not lie by the hour of their upload."""
    return f"v{version}-manifests"


def file_folder(gateway: str, rule: str, date: str, version: int = VERSION) -> str:
    """The folder with the files of one gateway, rule and UTC date."""
    return f"{data_folder(version)}/gw={safe(gateway)}/rule={safe(rule)}/date={safe(date)}"


def file_name(gateway: str, rule: str, date: str, first_seq: int, last_seq: int, sha256: str) -> str:
    """The name of a data file, from the range of its rows and the hash of its content."""
    return f"{file_folder(gateway, rule, date)}/{first_seq}-{last_seq}-{sha256[:16]}{DATA_SUFFIX}"


def manifest_name(data_name: str) -> str:
    """The name by which the job knows the manifest of a data file; earlier gateways uploaded it there.

    >>> manifest_name("v1/gw=a/rule=r/date=2026-11-21/1-9-ab.jsonl.gz")
    'v1-manifests/gw=a/rule=r/date=2026-11-21/1-9-ab.json'
    """
    version, _, rest = data_name.partition("/")
    return f"{version}-manifests/{rest.removesuffix(DATA_SUFFIX)}{MANIFEST_SUFFIX}"


def arrival_hour(at_ms: int) -> str:
    """The folder of an hour, UTC. Folders sort as the hours do.

    >>> arrival_hour(1_763_683_200_000)
    'day=2025-11-21/hour=00'
    """
    return f"day={utc_date(at_ms)}/hour={at_ms // 3_600_000 % 24:02}"


def arrival_name(data_name: str, at_ms: int) -> str:
    """The name of the manifest of a data file that is uploaded at an instant.

    >>> arrival_name("v2/gw=a/rule=r/date=2025-11-21/1-9-ab.jsonl.gz", 1_763_683_200_000)
    'v2-arrivals/day=2025-11-21/hour=00/gw=a/rule=r/date=2025-11-21/1-9-ab.json'
    """
    rest = data_name.partition("/")[2]
    return f"{ARRIVALS_FOLDER}/{arrival_hour(at_ms)}/{rest.removesuffix(DATA_SUFFIX)}{MANIFEST_SUFFIX}"


def is_of_uploads(folder: str) -> bool:
    """True for a folder at the top of a bucket in which gateways upload rows or what belongs to them.

    >>> [name for name in ("v1", "v2-arrivals", "v2-archive", "gw=a", "fleet") if is_of_uploads(name)]
    ['v1', 'v2-arrivals']
    """
    by_version = (*map(data_folder, VERSIONS_READ), *map(manifest_folder, VERSIONS_READ))
    return folder in (*by_version, ARRIVALS_FOLDER, SCHEMAS_FOLDER, HEARTBEATS_FOLDER)


def schema_name(rule: str, schema: str) -> str:
    """The name of a schema file; `schema` is the hash of the rule and the id of the schema.

    >>> schema_name("hot", "5f1c6f0e9d3a7b24-e3b0c44298fc1c14")
    'v2-schemas/rule=hot/5f1c6f0e9d3a7b24-e3b0c44298fc1c14.json'
    """
    return f"{SCHEMAS_FOLDER}/rule={safe(rule)}/{schema}{MANIFEST_SUFFIX}"


def heartbeat_name(gateway: str, spool: str) -> str:
    """The name of the heartbeat of a spool.

    >>> heartbeat_name("gw 1", "a1b2")
    'v2-heartbeats/gw=gw~201/a1b2.json'
    """
    return f"{HEARTBEATS_FOLDER}/gw={safe(gateway)}/{safe(spool)}.json"


def archive_name(gateway: str, rule: str, date: str, first_seq: int, last_seq: int, sha256: str) -> str:
    """The name of a file of archived events. One file has events of all rules;
    names sort in the order of arrival.

    >>> archive_name("gw1", "", "2026-11-21", 1, 9, "ab")
    'v2-archive/gw=gw1/date=2026-11-21/00000000000000000001-00000000000000000009-ab.jsonl.gz'
    """
    folder = f"{ARCHIVE_FOLDER}/gw={safe(gateway)}/date={safe(date)}"
    return f"{folder}/{first_seq:020}-{last_seq:020}-{sha256[:16]}{DATA_SUFFIX}"


def archive_heartbeat_name(gateway: str, spool: str) -> str:
    """The name of the heartbeat of a spool of archived events."""
    return f"{ARCHIVE_FOLDER}-heartbeats/gw={safe(gateway)}/{safe(spool)}.json"

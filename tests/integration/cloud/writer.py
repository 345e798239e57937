"""A process that is meant to be killed: commits rows with its position, uploads, and
prints what it was promised.

    python -m tests.integration.cloud.writer SPOOL BUCKET

It goes on from the stored position, as a gateway does, and prints `N` once row N is durable.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from cloud_sync.records import Record
from cloud_sync.spool import Spool
from cloud_sync.targets import open_target
from cloud_sync.uploader import Uploader, UploadSettings

NOW_MS = 1_763_683_200_000


def main(path: str, bucket: str) -> None:
    """Write until killed; rows of a commit vary in number, uploads run beside."""
    spool = Spool(Path(path), "gw1")
    uploader = Uploader(spool, open_target(bucket), UploadSettings(rows_max=37, wait_ms=0))
    threading.Thread(target=lambda: [uploader.step(NOW_MS) for _ in iter(int, 1)], daemon=True).start()
    number = int(spool.state().get("position", b"0"))
    while True:
        group = number % 7 + 1
        spool.append(
            [Record("hot", "2025-11-21", b'{"n":%d}' % (number + i)) for i in range(1, group + 1)], NOW_MS
        )
        number += group
        spool.commit(NOW_MS, {"position": str(number).encode()})
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

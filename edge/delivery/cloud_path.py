"""The way of results and of archived events from the gateway to the bucket: their spools and uploaders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloud_sync.records import ARCHIVE, RESULTS, Layout
from cloud_sync.spool import Spool, SpoolSettings
from cloud_sync.spool.types import OnFull
from edge.clock import Clock
from edge.config import Config
from edge.delivery.spools import ARCHIVE_FILE, RESULTS_FILE, Spools

if TYPE_CHECKING:
    from cloud_sync.uploader import Uploader, UploadWorker

POLICIES: dict[str, OnFull] = {"block": "block", "dropOldest": "drop_oldest", "dropNewest": "drop_newest"}

MICROSECONDS = 1_000


class CloudPath:
    """The spools of a gateway, and for each, if a target is configured, an uploader with its thread."""

    def __init__(self, config: Config, clock: Clock) -> None:
        """Open the spool of results, and that of archived events if there is one.
        Raises SpoolError, BadTarget."""
        self._config = config
        self._clock = clock
        self._is_started = False
        self._uploads: dict[Spool, tuple[Uploader, UploadWorker]] = {}
        results = self._open(RESULTS_FILE, config.limits.spool_bytes_max, 1, RESULTS)
        self.spools = Spools(results, self._open_archive)
        if (config.data.dir / ARCHIVE_FILE).exists():
            self.spools.archive()

    def uploader(self, spool: Spool) -> Uploader | None:
        """The uploader of a spool; None without a target."""
        found = self._uploads.get(spool)
        return found[0] if found else None

    def start(self) -> None:
        """Begin to upload."""
        self._is_started = True
        for _, worker in self._uploads.values():
            worker.start()

    def close(self, until_ms: int) -> None:
        """End the uploads until the monotonic `until_ms`."""
        for _, worker in self._uploads.values():
            worker.close(max(0.1, (until_ms - self._clock.monotonic_ms()) / 1000))

    def _open_archive(self) -> Spool:
        # Numbers begin with the time of creation, so that files of a later spool (a new disk) sort behind.
        first_seq = max(1, self._clock.now_ms() * MICROSECONDS)
        return self._open(ARCHIVE_FILE, self._config.limits.archive_bytes_max, first_seq, ARCHIVE)

    def _open(self, name: str, bytes_max: int, first_seq: int, layout: Layout) -> Spool:
        config = self._config
        settings = SpoolSettings(
            group_wait_ms=config.journal.spool_interval_ms,
            bytes_max=bytes_max,
            on_full=POLICIES[config.cloud.on_full],
            age_max_ms=config.cloud.age_max_ms,
            first_seq=first_seq,
        )
        spool = Spool(config.data.dir / name, config.gateway.id, settings, layout)
        if config.cloud.target is not None:
            self._uploads[spool] = self._upload_worker(spool, config.cloud.target)
            if self._is_started:
                self._uploads[spool][1].start()
        return spool

    def _upload_worker(self, spool: Spool, target: str) -> tuple[Uploader, UploadWorker]:
        from cloud_sync.targets import open_target
        from cloud_sync.uploader import Uploader, UploadSettings, UploadWorker

        cloud = self._config.cloud
        settings = UploadSettings(
            cloud.rows_max,
            wait_ms=cloud.interval_ms,
            heartbeat_ms=cloud.heartbeat_ms,
            sign_key=cloud.sign_key.reveal() if cloud.sign_key else "",
        )
        uploader = Uploader(spool, open_target(target), settings)
        return uploader, UploadWorker(uploader, self._clock)

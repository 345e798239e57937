"""Targets `tmp://name`: a directory below that of temporary files."""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

from cloud_sync.targets import DirectoryTarget, register_target

register_target("tmp", lambda url: DirectoryTarget(Path(gettempdir()) / url.removeprefix("tmp://")))

"""kill -9 at any moment: whatever was promised arrives, exactly once."""

from __future__ import annotations

import gzip
import json
import random
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cloud_sync import spool_tools
from cloud_sync.names import arrival_name
from cloud_sync.spool import Spool
from cloud_sync.targets import open_target
from cloud_sync.uploader import Uploader
from tests.integration.cloud.writer import NOW_MS

KILLS = 8


def run_and_kill(spool: Path, bucket: Path, rng: random.Random) -> int:
    """Start the writer, kill it after a random number of promises; the last number it promised."""
    command = [sys.executable, "-m", "tests.integration.cloud.writer", str(spool), str(bucket)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None and writer.stderr is not None
        promised = 0
        for _ in range(rng.randint(1, 120)):
            line = writer.stdout.readline()
            assert line, writer.stderr.read()
            promised = int(line)
        writer.send_signal(signal.SIGKILL)
        for line in writer.stdout.read().split("\n")[:-1]:  # whole lines only
            promised = int(line)
        return promised


@pytest.mark.slow
def test_nothing_promised_is_lost_or_doubled(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    spool_path, bucket = tmp_path / "spool.db", tmp_path / "bucket"
    promised = 0
    for _ in range(KILLS):
        last = run_and_kill(spool_path, bucket, rng)
        assert last > promised, f"seed {seed}: no progress after a kill"
        promised = last
    with closing(Spool(spool_path, "gw1")) as spool:
        stored = int(spool.state()["position"])
        Uploader(spool, open_target(str(bucket))).drain(NOW_MS)
        assert spool.stats().rows == 0
    assert stored >= promised, f"seed {seed}"
    arrived: list[int] = []
    for path in sorted((bucket / "v2").rglob("*.jsonl.gz")):
        name = path.relative_to(bucket).as_posix()
        assert (bucket / arrival_name(name, NOW_MS)).exists(), f"seed {seed}: {name} has no manifest"
        arrived += [json.loads(line)["n"] for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert sorted(arrived) == list(range(1, stored + 1)), f"seed {seed}"
    assert spool_tools.verify(spool_path).is_sound

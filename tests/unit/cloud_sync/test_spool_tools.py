"""The spool tools: look without touching, mend without losing."""

from __future__ import annotations

import io
import json
from contextlib import closing
from pathlib import Path

import pytest

from cloud_sync import spool_tools
from cloud_sync.errors import SpoolBusy, SpoolError
from cloud_sync.records import ROW_OVERHEAD_BYTES
from cloud_sync.spool import Spool
from cloud_sync.spool.repair import repair
from tests.unit.cloud_sync.support import DATE, NOW_MS, MemoryTarget, flip_body, record, records


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed spool with five rows of two rules and one state entry."""
    path = tmp_path / "spool.db"
    with closing(Spool(path, "gw1")) as spool:
        spool.append([*records(3), *records(2, start=4, rule="cold")], NOW_MS)
        spool.commit(NOW_MS, {"position": b"42"})
    return path


def test_ls_groups_by_rule_and_date_beside_a_running_writer(path: Path) -> None:
    with closing(Spool(path, "gw1")):
        groups = spool_tools.ls(path)
    size = len(record(1).body) + ROW_OVERHEAD_BYTES
    assert groups == [
        spool_tools.Group("hot", DATE, 3, 3 * size, 1, 3),
        spool_tools.Group("cold", DATE, 2, 2 * size, 4, 5),
    ]


def test_verify_names_what_is_damaged(path: Path) -> None:
    assert spool_tools.verify(path) == spool_tools.Verdict(5, (), (), (), ())
    flip_body(path, 2)
    found = spool_tools.verify(path)
    assert found.damaged_rows == (2,) and not found.is_sound


def test_export_writes_what_an_upload_would(path: Path) -> None:
    flip_body(path, 2)
    out = io.BytesIO()
    assert spool_tools.export(path, out, rule="hot") == 2
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["gateway"], line["rule"], line["seq"], line["n"]) for line in lines] == [
        ("gw1", "hot", 1, 1),
        ("gw1", "hot", 3, 3),
    ]


def test_replay_uploads_everything_that_is_intact(path: Path) -> None:
    target = MemoryTarget()
    assert spool_tools.replay(path, "gw1", target, NOW_MS) == 5
    assert spool_tools.ls(path) == [] and len(target.files) == 5, "two files, their manifests and a heartbeat"


def test_repair_needs_the_gateway_to_be_stopped(path: Path) -> None:
    with closing(Spool(path, "gw1")), pytest.raises(SpoolBusy):
        repair(path)


def test_repair_keeps_all_that_is_readable_and_the_original(path: Path) -> None:
    flip_body(path, 2)
    with closing(Spool(path, "gw1")) as spool:
        identity = spool.spool_id
    result = repair(path)
    assert (result.rows, result.set_aside, result.state, result.lost) == (4, 1, 1, [])
    assert result.missing == 0
    assert result.original.exists()
    with closing(Spool(path, "gw1")) as spool:
        assert spool.spool_id == identity and spool.state() == {"position": b"42"}
        assert [row.seq for row in spool.outgoing.take("hot", DATE, 10, 10**6)] == [1, 3]
        assert spool.stats().rows == 5
        spool.append(records(1), NOW_MS)
        spool.commit(NOW_MS)
        assert [row.seq for row in spool.outgoing.take("hot", DATE, 10, 10**6)] == [1, 3, 6]


def test_repair_saves_the_readable_part_of_a_broken_file(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    with closing(Spool(path, "gw1")) as spool:
        spool.append([record(number, size=1000) for number in range(1, 201)], NOW_MS)
        spool.commit(NOW_MS, {"position": b"42"})
    content = bytearray(path.read_bytes())
    page = len(content) // 2 // 4096 * 4096
    content[page : page + 4096] = b"\xff" * 4096
    path.write_bytes(content)
    assert not spool_tools.verify(path).is_sound
    result = repair(path)
    assert result.lost and 190 <= result.rows < 200 and result.state == 1, (
        "only the rows of one page are lost"
    )
    assert result.missing == 200 - result.rows
    with closing(Spool(path, "gw1")) as spool:
        assert spool.stats().counters["lost"] == result.missing
        assert spool.state() == {"position": b"42"}
        spool.append(records(1), NOW_MS)
        spool.commit(NOW_MS)
        assert spool.outgoing.take("hot", DATE, 1000, 10**9)[-1].seq > 1_000_000, (
            "behind every number that may be lost"
        )
    assert spool_tools.verify(path).is_sound


def test_a_missing_spool_is_told(tmp_path: Path) -> None:
    for tool in (spool_tools.ls, spool_tools.verify, repair):
        with pytest.raises(SpoolError, match="there is no spool"):
            tool(tmp_path / "none.db")

"""`penstock journal` tells what is there, finds damage, and cuts where it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.cli import main
from edge.journal.reader import JournalPass, read, segments
from tests.unit.edge.world import STREAM, World, rule


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of a gateway that took five messages in, and has a snapshot after three."""
    world = World(tmp_path)
    world.write("s.yaml", STREAM)
    world.write("a.yaml", rule("a", "SELECT n, lag(n) AS before FROM m"))
    world.reload()
    for number in range(5):
        world.source.send({"n": number})
        world.gateway.turn()
        if number == 2:
            world.commits.snapshot()
    world.close()
    return tmp_path


def test_ls_and_verify(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "ls", "--data", str(data)]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == 3
    assert listed[0].startswith("00000000000000000000.journal  from 0  ")
    assert main(["journal", "verify", "--data", str(data)]) == 0
    assert "5 messages, end at" in capsys.readouterr().out


def test_verify_tells_damage(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (segment,) = segments(data / "journal")
    body = bytearray(segment.path.read_bytes())
    body[list(read(data / "journal", 0, JournalPass()))[2].position + 18] ^= 1
    segment.path.write_bytes(body)
    assert main(["journal", "verify", "--data", str(data)]) == 1
    out = capsys.readouterr().out
    assert "are damaged or missing" in out
    assert out.endswith("damaged\n")


def test_verify_tells_an_end_that_is_not_intact(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (segment,) = segments(data / "journal")
    body = bytearray(segment.path.read_bytes())
    body[list(read(data / "journal", 0, JournalPass()))[-1].position + 18] ^= 1
    segment.path.write_bytes(body)
    assert main(["journal", "verify", "--data", str(data)]) == 0
    out = capsys.readouterr().out
    assert "bytes are not intact" in out and "gone if they were acknowledged" in out


def test_cut(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = list(read(data / "journal", 0, JournalPass()))
    assert main(["journal", "cut", "--data", str(data), str(entries[2].end + 1)]) == 2
    assert main(["journal", "cut", "--data", str(data), str(entries[2].end)]) == 0
    assert list(read(data / "journal", 0, JournalPass())) == entries[:3]
    assert not list((data / "snapshots").glob("*.snapshot")), "it was taken behind the cut"


def test_cut_refuses_while_the_gateway_runs(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(data)
    assert main(["journal", "cut", "--data", str(data), "0"]) == 2
    assert "the gateway is running" in capsys.readouterr().err
    world.close()


def test_a_journal_that_was_emptied_beside_a_snapshot_is_damaged(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (segment,), (snapshot,) = segments(data / "journal"), (data / "snapshots").glob("*.snapshot")
    segment.path.unlink()
    assert main(["journal", "verify", "--data", str(data)]) == 1
    assert f"{int(snapshot.stem)} bytes at position 0 are damaged or missing" in capsys.readouterr().out

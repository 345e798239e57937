"""Snapshots in pages: what has not changed is not written again, the two newest share no file,
and what is read is what was written, with a restart after every one."""

from __future__ import annotations

import random
import struct
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from edge.clock import SimulatedClock
from edge.journal import pages
from edge.journal.snapshots import Snapshots
from sinks.formats import lossless_json
from sql import Catalog, Engine, run_script
from sql.algebra.row_blocks import RowBlocks

TABLE = "create table T (dev string primary key, temp double)"
WINDOW = "create window T#unique(dev) as (dev string, temp double)"


def gateway(declaration: str, rows: int) -> Engine:
    """An engine with one relation."""
    engine = Engine(Catalog())
    run_script(engine, f"@name('t') {declaration}", 0)
    change(engine, range(rows), 0)
    return engine


def change(engine: Engine, devices: Any, temp: int) -> None:
    """Give devices another temperature."""
    relation = engine.catalog.relations["T"]
    kept = {event.row["dev"]: event for event in relation.content()}
    rows = [{"dev": f"pump-{number:05d}", "temp": temp + number / 10} for number in devices]
    relation.write([(kept.get(row["dev"]), row) for row in rows], (), temp)


def state_of(engine: Engine) -> dict[str, Any]:
    return {"version": 1, "rules": {"t": engine.snapshot("t")}}


@pytest.mark.long
def test_only_what_changed_is_written(tmp_path: Path) -> None:
    for declaration in (TABLE, WINDOW):
        folder = tmp_path / declaration.split()[1]
        engine, dice, written, whole = gateway(declaration, 3_000), random.Random(1), [], 0
        for number in range(4):
            change(engine, dice.sample(range(3_000), 2 * (number > 0)), number)
            snapshots = Snapshots(folder, SimulatedClock())  # as after a restart
            snapshots.make(number, partial(state_of, engine))
            whole = whole or snapshots.written_bytes
            written.append(snapshots.written_bytes / whole)
            found = snapshots.load()
            assert found is not None
            assert lossless_json.encode(found.state) == lossless_json.encode(state_of(engine))
        assert found is not None
        assert written[1] > 0.9, "the two newest share no file"
        assert max(written[2:]) < 0.5, written
        again = gateway(declaration, 0)
        again.restore("t", found.state["rules"]["t"])
        assert state_of(again) == state_of(engine)


def numbers_of(dice: random.Random, size: int) -> list[list[int]]:
    return [[number, dice.randrange(10**9)] for number in range(size)]


def test_any_damaged_file_leaves_one_of_the_two_newest(tmp_path: Path) -> None:
    dice = random.Random(2)
    rows = numbers_of(dice, 1_000)
    state: dict[str, Any] = {"at_ms": 0, "rules": {"a": rows, "b": {"n": 1}}}
    for step in range(5):
        state["at_ms"] = step
        for _ in range(3):
            rows[dice.randrange(1_000)][1] += 1
        Snapshots(tmp_path, SimulatedClock()).make(step, lambda: state)
        for path in sorted(tmp_path.iterdir()):
            kept = path.read_bytes()
            path.write_bytes(
                kept[: len(kept) // 2] + bytes([kept[len(kept) // 2] ^ 1]) + kept[len(kept) // 2 + 1 :]
            )
            found = Snapshots(tmp_path, SimulatedClock()).load()
            assert step == 0 or (found is not None and found.position in (step - 1, step)), path
            assert found is None or found.state["at_ms"] == found.position
            path.write_bytes(kept)


def test_files_are_bounded_and_old_ones_are_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "FILES_MAX", 4)
    dice = random.Random(3)
    rows = numbers_of(dice, 1_500)
    snapshots = Snapshots(tmp_path, SimulatedClock())
    for step in range(16):
        for _ in range(5):
            rows[dice.randrange(1_500)][1] += 1
        snapshots.make(step, lambda: {"rules": {"a": rows}})
    sizes = [path.stat().st_size for path in tmp_path.glob(f"*{pages.PAGES_SUFFIX}")]
    assert len(sizes) <= 2 * 4
    assert sum(sizes) < 2 * 2.5 * snapshots.last_bytes, "two snapshots, of whose files at least half is used"
    found = snapshots.load()
    assert found is not None
    assert found.state["rules"]["a"] == rows


def test_pages_of_a_crash_between_two_names_are_removed(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path, SimulatedClock())
    pages.pages_path(tmp_path, 7).write_bytes(b"of a snapshot without a name")
    snapshots.make(1, lambda: {"rules": {}})
    assert [number for number, _ in pages.numbered(tmp_path)] == [8]


def test_a_snapshot_in_one_file_is_still_read(tmp_path: Path) -> None:
    state = {"at_ms": 5, "rules": {"a": {"n": 1.5}}}
    index, bodies = [], []
    for name, value in (("", {"at_ms": 5}), ("a", {"n": 1.5})):
        plain = lossless_json.encode(value)
        bodies.append(zlib.compress(plain, 1))
        index.append([name, len(bodies[-1]), zlib.crc32(bodies[-1]), len(plain)])
    head = lossless_json.encode(index)
    path = tmp_path / "00000000000000000012.snapshot"
    path.write_bytes(struct.pack("<8sII", b"penstkS1", len(head), zlib.crc32(head)) + head + b"".join(bodies))
    found = Snapshots(tmp_path, SimulatedClock()).load()
    assert found is not None
    assert (found.position, found.state) == (12, state)


EVERYTHING = """
create schema E(k string, n int);
create schema Q(k string, n int);
create table T (k string primary key, n int);
create table U (k string primary key, n int);
create unique index by_n on U (n, k);
create table V (k string primary key, n int);
create table S (k string primary key, c count(*), s sum(int));
create table L (k string primary key, w window(*) @type(E));
create window W#keepall as (k string, n int);
on E as e merge T as t where t.k = e.k when matched then update set n = e.n
    when not matched then insert select e.k as k, e.n as n;
on E as e merge U as t where t.k = e.k when matched then update set n = e.n
    when not matched then insert select e.k as k, e.n as n;
on E as e merge W as t where t.k = e.k when matched then update set n = e.n
    when not matched then insert select e.k as k, e.n as n;
insert into V select k, n from E;
into table S select count(*) as c, sum(n) as s from E group by k;
into table L select window(*) as w from E#length(20) group by k;
on Q(n = 1) as q update V as t set n = t.n + 1 where t.k < q.k;
on Q(n = 2) as q update T as t set k = t.k || 'x' where t.k = q.k;
on Q(n = 3) as q delete from T as t where t.k = q.k;
on Q(n = 4) as q delete from W as w where w.k < q.k;
on Q(n = 5) as q delete from S as s where s.k = q.k;
select irstream k, n from E#length(40);
select k, count(*) as c, sum(n) as s from E#length(40) group by k;
select k, count(*) as c, max(n) as m from E group by k;
select k, sum(n) as s from E#time_batch(5) group by k;
select k, prior(1, n) as p from E#length_batch(7);
select k, lag(n) as p from E#length(9);
select E.k as k from E#length(30), Q#length(5) where E.k = Q.k;
select k, (select max(n) from E#length(6)) as m,
    (select n from E#length(9) as e where e.k = q.k) as n from Q as q;
select k, collect(*) as rows from E group by k, slidingwindow(ms, 9);
select k, count(*) as c from E group by k, countwindow(50, 3);
create context keyed partition by k from E;
context keyed select k, n from E#length(3);
"""


def blocks_of(engine: Engine) -> dict[str, Any]:
    """The state of an engine in blocks of four rows."""
    states = {name: query.snapshot() for name, query in engine.queries.items()}
    in_small_blocks(states)
    return {"tables": states, "rules": {}}


def in_small_blocks(state: object) -> None:
    if isinstance(state, RowBlocks):
        state.bits = 2
    elif isinstance(state, dict | list | tuple):
        for part in state.values() if isinstance(state, dict) else state:
            in_small_blocks(part)


@pytest.mark.long
def test_a_snapshot_takes_over_only_blocks_that_nothing_has_written(tmp_path: Path) -> None:
    engine, dice = Engine(Catalog()), random.Random(4)
    run_script(engine, EVERYTHING, 0)
    engine.push("E", [{"k": f"{number:03d}", "n": number} for number in range(60)], 0)
    snapshots = Snapshots(tmp_path, SimulatedClock())
    for step in range(24):
        engine.push(
            "E" if step % 3 else "Q", [{"k": f"{dice.randrange(9):03d}", "n": 1 + step // 3 % 5}], step
        )
        snapshots.make(step, partial(blocks_of, engine))
        snapshot = snapshots.load()
        assert snapshot is not None
        whole = {name: engine.snapshot(name) for name in engine.queries}
        assert lossless_json.encode(snapshot.state["tables"]) == lossless_json.encode(whole), step
    known = pages.reusable(sorted(tmp_path.glob("*.snapshot"), reverse=True))
    assert len(known.blocks) > 150, "most blocks are taken over"


@pytest.mark.parametrize("magic", [b"penstkS1", b"penstkS2", b"penstkS4"])
def test_a_snapshot_with_the_mark_of_another_format_is_unreadable(tmp_path: Path, magic: bytes) -> None:
    # One flipped bit turns S3 into S2, and the checksums do not cover the mark.
    path = tmp_path / "1.snapshot"
    index, stored = pages.encode({"rules": {"r": {"n": 1}}}, 1, pages.NOTHING, "run")
    path.write_bytes(magic + index[len(magic) :])
    pages.pages_path(tmp_path, 1).write_bytes(stored)
    with pytest.raises(ValueError, match=r"does not fit|not enough values|Expected"):
        pages.read(path)

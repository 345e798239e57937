"""The journal's files: what is synced survives, torn tails are cut, damage is told and passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.base.message import Message
from edge.journal.disk import Disk
from edge.journal.reader import JournalPass, read, segments
from edge.journal.record import Batch, Record, Tick
from edge.journal.writer import FRAME_BYTES, NAMED_BYTES, Journal


def journal_in(folder: Path, end: int = 0, disk: Disk | None = None, compression: str = "none") -> Journal:
    return Journal(folder, end, segment_bytes=1_000, compression=compression, disk=disk)


def message(number: int, topic: str = "plant/x") -> Message:
    return (topic, b"%d" % number, number, 0x02)


def found(folder: Path, start: int = 0) -> tuple[list[Record | list[Message]], JournalPass]:
    reading = JournalPass()
    entries = list(read(folder, start, reading))
    return [entry.messages if isinstance(entry.record, Batch) else entry.record for entry in entries], reading


@pytest.mark.parametrize("compression", ["none", "zlib", "zstd"])
def test_what_was_synced_is_read_again_in_order(tmp_path: Path, compression: str) -> None:
    journal = journal_in(tmp_path, compression=compression)
    expected: list[Record | list[Message]] = []
    for number in range(1, 200):
        batch = [message(number, f"plant/{number % 7}"), message(number + 1, "plant/é")]
        journal.append_batch(number, batch)
        journal.append(Tick(number))
        expected += [batch, Tick(number)]
        if number % 10 == 0:
            journal.sync()
    journal.sync()
    assert journal.durable == journal.position
    records, reading = found(tmp_path)
    assert records == expected
    assert (reading.end, reading.damage, reading.torn_bytes) == (journal.position, [], 0)
    assert len(segments(tmp_path)) > 3
    positions = [entry.position for entry in read(tmp_path, 0, JournalPass())]
    half = positions[len(positions) // 2]
    assert found(tmp_path, half)[0] == expected[positions.index(half) :]


def test_what_a_sync_makes_durable_is_one_frame_unless_it_is_large(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0, segment_bytes=10_000_000, compression="none")
    for number in range(1, 51):
        journal.append_batch(number, [message(number)])
        journal.append(Tick(number))
    journal.sync()
    assert len({entry.position for entry in read(tmp_path, 0, JournalPass())}) == 1
    large = ("plant/x", bytes(FRAME_BYTES // 2), 1, 0x02)
    for number in range(51, 55):
        journal.append_batch(number, [large])
    journal.sync()
    assert len({entry.position for entry in read(tmp_path, 0, JournalPass())}) == 3
    assert [len(records) for records in found(tmp_path)[0] if isinstance(records, list)] == [1] * 54


def test_messages_that_come_one_by_one_fill_a_frame_sooner_than_many_at_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0, segment_bytes=10_000_000, compression="none")
    journal.append_batch(1, [message(number) for number in range(1, 101)])
    assert journal.position == 0
    for number in range(101, 201):
        journal.append_batch(number, [message(number)])
    assert journal.position > 0


FRAMES_OF_ONE_RECORD = (
    b"penstock journal 1\n\0\0\0\0\0"
    b"\xa7J\0\0\x1e\0\0\0\x18\0\0\0\xf0?\xba\xc1\x99\xa5batch\x01\0\x91\xa7plant/x"
    b"\x91\0\x91\xc4\x011\x91\x01\xc4\x01\x02\xa0"
    b"\xa7J\0\0\x07\0\0\0F\0\0\0\x13\xc4\xdbR\x92\xa4tick\x02"
)
"""A segment by a version that wrote a frame for each record: message 1 at 1, and a tick at 2."""


def test_a_journal_with_a_frame_for_each_record_is_read_and_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / f"{0:020}.journal").write_bytes(FRAMES_OF_ONE_RECORD)
    records, reading = found(tmp_path)
    assert (records, reading.end, reading.damage) == ([[message(1)], Tick(2)], len(FRAMES_OF_ONE_RECORD), [])
    journal = journal_in(tmp_path, reading.end)
    journal.append_batch(3, [message(3)])
    journal.append(Tick(4))
    journal.sync()
    assert found(tmp_path)[0] == [[message(1)], Tick(2), [message(3)], Tick(4)]


def test_the_next_run_goes_on_where_the_journal_ends(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.append_batch(1, [message(1)])
    journal.sync()
    journal.append_batch(2, [message(2)])  # never synced: the process dies
    journal = journal_in(tmp_path, found(tmp_path)[1].end)
    journal.append_batch(3, [message(3)])
    journal.sync()
    assert found(tmp_path)[0] == [[message(1)], [message(3)]]


def test_a_torn_tail_is_cut_and_written_over(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.append_batch(1, [message(1)])
    journal.sync()
    end = journal.durable
    journal.append_batch(2, [message(2)])
    journal.append_batch(3, [message(3)])
    journal.sync()
    (segment,) = segments(tmp_path)
    whole = segment.path.read_bytes()
    # a sector of the last write is missing
    segment.path.write_bytes(whole[: end + 3] + b"\0" * 3 + whole[end + 6 :])
    records, reading = found(tmp_path)
    assert records == [[message(1)]], "what stands behind the torn record was not acknowledged either"
    assert (reading.end, reading.damage) == (end, [])
    assert reading.torn_bytes > 0
    journal = journal_in(tmp_path, reading.end)
    journal.append_batch(9, [message(9)])
    journal.sync()
    assert found(tmp_path)[0] == [[message(1)], [message(9)]]


@pytest.mark.parametrize("is_last", [True, False])
def test_damage_is_told_and_what_follows_is_read(tmp_path: Path, is_last: bool) -> None:
    journal = journal_in(tmp_path)
    for number in range(1, 6 if is_last else 60):
        journal.append_batch(number, [message(number)])
        journal.sync()
    first = segments(tmp_path)[0]
    data = bytearray(first.path.read_bytes())
    second = list(read(tmp_path, 0, JournalPass()))[1]
    data[second.position + 20] ^= 0x10
    first.path.write_bytes(data)
    records, reading = found(tmp_path)
    assert records[:2] == [[message(1)], [message(3)]]
    assert len(records) == (4 if is_last else 58)
    (damage,) = reading.damage
    assert (damage.position, damage.bytes) == (second.position, second.end - second.position)


def test_messages_whose_topic_was_damaged_are_left_out_and_no_other_gets_a_wrong_topic(
    tmp_path: Path,
) -> None:
    journal = journal_in(tmp_path)
    for number, topic in enumerate(("a", "b", "c", "b", "a"), 1):
        journal.append_batch(number, [message(number, topic)])
        journal.sync()
    (segment,) = segments(tmp_path)
    data = bytearray(segment.path.read_bytes())
    data[list(read(tmp_path, 0, JournalPass()))[1].position + 20] ^= 0x10
    segment.path.write_bytes(data)
    records, reading = found(tmp_path)
    assert records == [[message(1, "a")], [message(3, "c")], [], [message(5, "a")]]
    assert reading.without_topic == 1


def test_topics_are_named_anew_so_that_damage_leaves_out_few_messages_behind_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0, segment_bytes=10 * NAMED_BYTES, compression="none")
    large = bytes(NAMED_BYTES // 4)
    for number in range(1, 21):
        journal.append_batch(number, [("plant/x", large, number, 0x02)])
        journal.sync()
    (segment,) = segments(tmp_path)
    data = bytearray(segment.path.read_bytes())
    data[100] ^= 0x10
    segment.path.write_bytes(data)
    records, reading = found(tmp_path)
    read_again = [record[0][2] for record in records if isinstance(record, list) and record]
    assert read_again == [*range(5, 21)]
    assert reading.without_topic == 3
    assert "3 messages are left out" in reading.problems()[-1]


def test_a_missing_segment_is_damage(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    for number in range(1, 100):
        journal.append_batch(number, [message(number)])
        journal.sync()
    listed = segments(tmp_path)
    listed[1].path.unlink()
    records, reading = found(tmp_path)
    (damage,) = reading.damage
    assert (damage.position, damage.bytes) == (listed[1].start, listed[2].start - listed[1].start)
    assert damage.path == tmp_path, "the file that is missing is none of those that are there"
    assert reading.end == journal.position
    assert 50 < len(records) < 99


@pytest.mark.parametrize("left", [0, 1])
def test_a_journal_that_does_not_reach_its_snapshot_is_damage(tmp_path: Path, left: int) -> None:
    """The folder was emptied, or its newest files were removed."""
    journal = journal_in(tmp_path)
    for number in range(1, 100):
        journal.append_batch(number, [message(number)])
        journal.sync()
    listed, taken_at = segments(tmp_path), journal.position
    for segment in listed[left:]:
        segment.path.unlink()
    reading = JournalPass()
    assert [*read(tmp_path, taken_at, reading)] == []
    (damage,) = reading.damage
    assert damage.position + damage.bytes == reading.end == taken_at
    assert (damage.position > 0) == bool(left)
    assert str(damage).startswith(f"{tmp_path}: ")


def test_closing_leaves_what_is_durable_though_a_new_segment_was_begun_in_memory(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    while journal.end_frame() < 900:
        journal.append_batch(1, [message(1)])
    journal.sync()
    durable = journal.position
    while journal.end_frame() < 3_000:  # over the end of the segment, and never synced: the disk is full, say
        journal.append_batch(2, [message(2)])
    journal.close()
    records, reading = found(tmp_path)
    assert (reading.end, reading.damage) == (durable, [])
    assert records[-1] == [message(1)]


class FullDisk(Disk):
    """Has no room for another file, or none for another byte."""

    room = True

    def create(self, path: Path, size: int) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        return super().create(path, size)


def test_a_full_disk_refuses_and_nothing_is_lost_when_there_is_room_again(tmp_path: Path) -> None:
    disk = FullDisk()
    disk.room = False
    journal = journal_in(tmp_path, disk=disk)
    journal.append_batch(1, [message(1)])
    with pytest.raises(OSError, match="No space"):
        journal.sync()
    for number in range(100, 150):
        journal.append_batch(number, [message(number)])
    with pytest.raises(OSError, match="No space"):
        journal.sync()
    assert not segments(tmp_path)
    disk.room = True
    journal.sync()
    assert not journal.is_short
    assert found(tmp_path)[0] == [[message(1)], *([message(number)] for number in range(100, 150))]


def test_segments_that_a_snapshot_covers_are_deleted(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    for number in range(1, 100):
        journal.append_batch(number, [message(number)])
        journal.sync()
    listed = segments(tmp_path)
    journal.forget(listed[2].start)
    assert segments(tmp_path) == listed[2:]
    journal.forget(journal.position)
    assert segments(tmp_path) == listed[-1:], "the one that is written stays"


def test_what_was_taken_in_has_room_when_there_is_none_for_another_segment(tmp_path: Path) -> None:
    disk = FullDisk()
    journal = journal_in(tmp_path, disk=disk)
    journal.append_batch(1, [message(1)])
    journal.sync()
    disk.room = False
    for number in range(2, 40):
        journal.append_batch(number, [message(number)])
        journal.end_frame()
    journal.sync()
    assert journal.is_short, "the next segment is the spare one; there is no further one"
    disk.room = True
    journal.try_spare()
    assert not journal.is_short
    assert found(tmp_path)[0] == [[message(number)] for number in range(1, 40)]

"""Files that are followed, as logs are: growth, rotation, deletion, and restarts at any time."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edge.intake.sources.files import growing, records
from tests.support.waiting import wait_for
from tests.unit.edge_files.support import Gateway, row


def renamed(gateway: Gateway) -> None:
    gateway.path.rename(gateway.path.with_name("rows.log.1"))


def copied_and_cut_off(gateway: Gateway) -> None:
    shutil.copyfile(gateway.path, gateway.path.with_name("rows.log.1"))
    os.truncate(gateway.path, 0)


ROTATIONS = [renamed, copied_and_cut_off]


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_a_file_is_rotated_while_it_is_read(gateway: Gateway, rotate: Callable[[Gateway], None]) -> None:
    """The new file is longer than the old one was, so its length says nothing."""
    gateway.append(1, 2)
    gateway.start()
    gateway.expect(1, 2)
    rotate(gateway)
    gateway.append(3, 4, 5)
    gateway.expect(1, 2, 3, 4, 5)
    gateway.restart()
    gateway.append(6)
    gateway.expect(1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_a_file_is_rotated_while_the_gateway_is_away(
    gateway: Gateway, rotate: Callable[[Gateway], None]
) -> None:
    """The rows that were appended before the rotation are in the old file or its copy."""
    gateway.append(1, 2)
    gateway.start()
    gateway.expect(1, 2)

    def work() -> None:
        gateway.append(3)
        rotate(gateway)
        gateway.append(4, 5, 6, 7)

    gateway.restart(work)
    gateway.expect(1, 2, 3, 4, 5, 6, 7)


def test_a_file_goes_on_behind_its_safe_rows(gateway: Gateway) -> None:
    gateway.append(1, 2)
    gateway.start()
    gateway.expect(1, 2)
    gateway.restart(lambda: gateway.append(3))
    gateway.expect(1, 2, 3)
    gateway.end()
    gateway.start(acknowledging=False)
    gateway.append(4)
    gateway.expect(1, 2, 3, 4)
    gateway.restart()  # row 4 was not safe
    gateway.expect(1, 2, 3, 4, 4)


def test_rows_of_a_renamed_file_that_were_not_safe_come_again(gateway: Gateway) -> None:
    gateway.append(1)
    gateway.start(acknowledging=False)
    gateway.expect(1)
    renamed(gateway)
    gateway.append(2)
    time.sleep(0.05)  # the gateway stays with the old file, for its row is not safe
    gateway.restart()
    gateway.expect(1, 1, 2)


def test_the_writer_goes_on_in_a_renamed_file_for_a_while(gateway: Gateway) -> None:
    gateway.append(1)
    gateway.start()
    gateway.expect(1)
    with gateway.path.open("a") as writer:
        renamed(gateway)
        time.sleep(0.05)
        writer.write(row(2) + row(3).rstrip("\n"))  # its last line has no end
    gateway.expect(1, 2)
    gateway.append(4)
    gateway.expect(1, 2, 3, 4)


def test_a_file_is_deleted_and_made_again(gateway: Gateway) -> None:
    gateway.append(1, 2)
    gateway.start()
    gateway.expect(1, 2)
    gateway.path.unlink()
    time.sleep(0.05)
    gateway.append(3)
    gateway.expect(1, 2, 3)
    gateway.restart(gateway.path.unlink)
    assert gateway.consumer is not None
    wait_for(lambda: gateway.consumer is not None and gateway.consumer.source.stats["errors"] > 0)
    gateway.append(4, 5, 6, 7)
    gateway.expect(1, 2, 3, 4, 5, 6, 7)


def test_a_file_that_was_copied_to_its_place_goes_on(gateway: Gateway) -> None:
    """As rsync and editors do: another inode, the same rows, and more of them."""
    gateway.append(1, 2)
    gateway.start()
    gateway.expect(1, 2)

    def replace() -> None:
        draft = gateway.path.with_name(".draft")
        shutil.copyfile(gateway.path, draft)
        gateway.append(len(gateway.rows()) + 1, path=draft)
        draft.replace(gateway.path)

    replace()
    gateway.expect(1, 2, 3)
    gateway.restart(replace)
    gateway.expect(1, 2, 3, 4)


def test_a_short_file_with_the_same_beginning_is_another_one(gateway: Gateway) -> None:
    """Its few bytes say little, but its inode does."""
    gateway.path.write_text('{"n": 1}\n')
    gateway.start()
    gateway.expect(1)
    renamed(gateway)
    gateway.path.write_text('{"n": 1}\n{"n": 2}\n')
    gateway.expect(1, 1, 2)


def test_csv_goes_on_with_the_names_of_its_header(gateway: Gateway) -> None:
    gateway.extra = {"fileType": "csv", "hasHeader": True, "ignoreStartLines": 1}
    gateway.path.write_text("# made by hand\n")
    gateway.start()
    time.sleep(0.05)
    with gateway.path.open("a") as file:
        file.write("n,text\n1,a\n")
    gateway.expect(1)
    gateway.restart()
    with gateway.path.open("a") as file:
        file.write('2,"two\n')
    time.sleep(0.05)
    assert gateway.rows() == [1]
    with gateway.path.open("a") as file:
        file.write('lines"\n')
    wait_for(lambda: len(gateway.rows()) == 2)
    assert gateway.consumer is not None
    assert json.loads(gateway.consumer.messages[-1][1]) == {"n": "2", "text": "two\nlines"}


@pytest.mark.parametrize("follow", [True, False])
def test_a_line_that_cannot_be_read_is_refused_and_those_behind_it_are_read(
    gateway: Gateway, follow: bool
) -> None:
    gateway.extra = {"fileType": "csv", "columns": ["n", "text"], "follow": follow}
    gateway.path.write_bytes(b'1,a\n"2"x,b\n\xff,c\n4,d\n')
    gateway.start()
    wait_for(lambda: len(gateway.rows()) == 2)
    assert gateway.rows() == [1, 4]
    assert gateway.consumer is not None
    assert [payload for _, payload, _, _ in gateway.consumer.bad] == [b'"2"x,b\n', b"\xff,c\n"]
    quote, encoding = (reason for _, _, _, reason in gateway.consumer.bad)
    assert quote == "not a line of CSV: ',' expected after '\"'"
    assert encoding.startswith("not a line of CSV: 'utf-8' codec can't decode byte 0xff in position 0")


def test_the_count_of_an_earlier_version_is_taken_over(gateway: Gateway) -> None:
    gateway.append(1, 2, 3)
    gateway.start()
    gateway.expect(1, 2, 3)
    gateway.end()
    (position,) = (gateway.folder / "positions").iterdir()
    position.write_text(json.dumps({"rows": 2, "file": str(gateway.path)}))
    gateway.start()
    gateway.expect(1, 2, 3, 3)


@pytest.mark.long
def test_a_look_reads_what_is_new_and_no_more(gateway: Gateway) -> None:
    """The file has 3 MB; the gateway looks at it more than ten times a second."""
    io = Path("/proc/self/io")
    if not io.exists():
        pytest.skip("the system does not count what a process reads")
    gateway.append(*range(10_000))
    gateway.start()
    wait_for(lambda: len(gateway.rows()) == 10_000)
    before = int(io.read_text().split()[1])
    time.sleep(0.5)
    gateway.append(10_000)
    wait_for(lambda: len(gateway.rows()) == 10_001)
    assert int(io.read_text().split()[1]) - before < 3_000_000


def test_a_file_is_rotated_several_times_while_the_gateway_is_away(gateway: Gateway) -> None:
    gateway.append(1)
    gateway.start()
    gateway.expect(1)

    def work() -> None:
        """logrotate counts the others up: rows.log.1 becomes rows.log.2."""
        for number in (2, 3, 4):
            gateway.append(number)
            for older in (3, 2, 1):
                path = gateway.path.with_name(f"rows.log.{older}")
                if path.exists():
                    path.rename(gateway.path.with_name(f"rows.log.{older + 1}"))
            renamed(gateway)
            time.sleep(0.02)
        gateway.path.with_name("rows.log.old").write_text(row(90))
        gateway.path.with_name("rows.log.1.gz").write_bytes(b"\x1f\x8b")
        gateway.append(5)

    gateway.restart(work)
    gateway.expect(1, 2, 3, 4, 5)
    gateway.restart()
    gateway.append(6)
    gateway.expect(1, 2, 3, 4, 5, 6)


def test_a_rotated_file_whose_rows_are_all_safe_leads_to_the_next(gateway: Gateway) -> None:
    gateway.append(1)
    gateway.start()
    gateway.expect(1)

    def work() -> None:
        gateway.path.rename(gateway.path.with_name("rows.log.2"))
        time.sleep(0.02)
        gateway.append(2)
        renamed(gateway)
        time.sleep(0.02)
        gateway.append(3)

    gateway.restart(work)
    gateway.expect(1, 2, 3)


def test_a_file_without_line_ends_is_read_in_pieces(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (growing, records):
        monkeypatch.setattr(module, "LINE_BYTES_MAX", 1_000)
    gateway.path.write_text("1" * 1_500)
    gateway.start()
    consumer = gateway.consumer
    assert consumer is not None
    wait_for(lambda: len(consumer.messages) == 1, "the first piece")
    with gateway.path.open("a") as file:
        file.write("\n2\n")
    wait_for(lambda: len(consumer.messages) == 3, "the other one, and the next row")
    assert [payload for _, payload, _, _ in consumer.messages] == [b"1" * 1_000, b"1" * 500, b"2"]
    consumer.messages.clear()  # they are no rows with numbers

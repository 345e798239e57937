"""Contexts of a running gateway: their partitions on the command line, and a shift by the
wall clock as it is set."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from edge.cli import main
from tests.integration.daemon.support import STREAM, daemon, publisher
from tests.integration.daemon.test_clock_jumps import library, write_offset
from tests.support.brokers import Mosquitto
from tests.support.waiting import wait_for

PER_DEVICE = (
    STREAM
    + """
contexts:
  per_device: {sql: partition by dev from m, idle: 1h}
  counted: {sql: partition by dev from m, idle: 1h}
tables:
  count: context counted create table count (dev string primary key, n count(*))
rules:
  counted: {sql: "context counted into table count select count(*) as n from m group by dev",
            actions: [nop: {}]}
  mean:
    context: per_device
    sql: SELECT context.key1 AS dev, avg(temp) AS a FROM m
    actions: [{file: {path: mean.jsonl}}]
"""
)
SHIFT = (
    STREAM
    + """
contexts:
  early: {sql: "start (0, 6, *, *, *) end (0, 14, *, *, *)", timezone: Europe/Berlin}
rules:
  count:
    context: early
    sql: select count(*) as c from m output last when terminated
    actions: [{file: {path: count.jsonl, sendSingle: true}}]
"""
)
BYTES_MAX = 700
"""What a partition with one running average may take; the tables that find it are not counted."""


@pytest.mark.broker
def test_the_command_line_lists_partitions(
    broker: Mosquitto, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with daemon(tmp_path, broker.url, {"mean.yaml": PER_DEVICE}) as gateway, publisher(broker.port) as plant:
        gateway.wait_ready()
        address = ["--address", gateway.address, "--data", str(gateway.data)]
        for number in range(5):
            plant.send("plant/a", {"dev": f"pump-{number}", "temp": 20.5 + number})
        wait_for(lambda: len(gateway.output("mean.jsonl")) == 5, what="the rows of five partitions")
        assert main(["partitions", "per_device", *address]) == 0
        heading, *lines = capsys.readouterr().out.splitlines()
        assert heading.startswith(
            "context per_device: 5 of 100000 partitions, 5 started, 0 ended, 0 refused, "
        )
        assert lines == [f"  id={number}  key1=pump-{number}" for number in range(5)]
        assert main(["partitions", "per_device", "--format", "json", *address]) == 0
        first = json.loads(capsys.readouterr().out.splitlines()[0])
        assert first == {"context": "per_device", "id": 0, "key1": "pump-0", "name": "per_device"}
        assert main(["partitions", "per_machine", *address]) == 2
        assert "contexts in use: " in capsys.readouterr().err
        chosen = ["partitions", "per_device", "--only", '{"keys": [["pump-3"], ["pump-9"]]}', *address]
        assert main(chosen) == 0
        assert capsys.readouterr().out == "  id=3  key1=pump-3\n"
        assert main(["partitions", "per_device", "--only", '{"colour": []}', *address]) == 2
        assert "chosen by one of all, ids, keys" in capsys.readouterr().err
        asked = ["sql", "--gateway", "--address", gateway.address, "--data", str(gateway.data)]
        asked += ["--execute", "select dev, n from count order by dev"]
        assert main([*asked, "--only", '{"keys": [["pump-1"]]}']) == 0
        assert capsys.readouterr().out == '{"dev": "pump-1", "n": 1}\n'
        told = gateway.status()["contexts"]["per_device"]
        assert 200 < told["bytes_per_partition"] < BYTES_MAX


@pytest.mark.broker
def test_a_shift_begins_and_ends_when_the_clock_is_set(broker: Mosquitto, tmp_path: Path) -> None:
    """The day is one of 23 or 25 hours in Berlin. The clock goes from before the change to 06:00
    and to 14:00, and back to 13:00, which begins no second shift."""
    day = next_change()
    offset = tmp_path / "offset"

    def set_clock(hour: int, minute: int) -> None:
        wanted = day.replace(hour=hour, minute=minute).timestamp()
        write_offset(offset, f"+{int(wanted - time.time())}")

    set_clock(1, 30)
    fake = {
        "LD_PRELOAD": str(library()),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with (
        daemon(tmp_path, broker.url, {"count.yaml": SHIFT}, **fake) as gateway,
        publisher(broker.port) as plant,
    ):
        gateway.wait_ready()

        def send(count: int) -> None:
            before = sum(gateway.status()["intake"]["received"].values())
            for number in range(count):
                plant.send("plant/a", {"n": number})
            wait_for(
                lambda: sum(gateway.status()["intake"]["received"].values()) == before + count,
                what="messages",
            )

        def live() -> int:
            return int(gateway.status()["contexts"]["early"]["counters"]["partitions"])

        send(2)
        set_clock(5, 59)
        send(1)
        assert live() == 0
        set_clock(6, 1)
        wait_for(lambda: live() == 1, what="the start of the shift")
        send(3)
        set_clock(14, 1)
        wait_for(lambda: gateway.output("count.jsonl"), what="the report of the shift")
        assert gateway.output("count.jsonl") == [{"c": 3}]
        set_clock(13, 0)
        send(1)
        assert live() == 0
        assert gateway.output("count.jsonl") == [{"c": 3}]


def next_change() -> datetime:
    """Midnight of the next day of 23 or 25 hours in Berlin."""
    day = datetime.now(ZoneInfo("Europe/Berlin")).replace(hour=0, minute=0, second=0) + timedelta(days=1)
    while day.utcoffset() == day.replace(hour=12).utcoffset():
        day += timedelta(days=1)
    return day

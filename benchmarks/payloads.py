"""The payloads all benchmarks decode: flat JSON objects of about 140 bytes, as a
plant's devices send them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from edge.intake.codecs.json_codec import JsonDecoder
from edge.intake.codecs.rows import row_class

BATCH = 500
START_MS = 1_767_225_600_000
EVENTS_PER_MS = 10
"""Ten thousand messages a second: a batch spans 50 ms."""


def payloads(count: int, devices: int, *, shuffled: bool = False) -> list[bytes]:
    """`count` messages of `devices` devices in turn (or in random order), from START_MS on."""
    random = Random(7)
    made = []
    for number in range(count):
        device = random.randrange(devices) if shuffled else number % devices
        temp = round(random.uniform(20, 100), 2)
        made.append(
            b'{"dev":"pump-%04d","temp":%.2f,"ts":%d,"seq":%d,'
            b'"status":"ok","site":"north","hum":%d.5,"rpm":%d,"shift":"late"}'
            % (
                device,
                temp,
                START_MS + number // EVENTS_PER_MS,
                number,
                random.randrange(30, 60),
                1400 + number % 100,
            )
        )
    return made


def batched(messages: Sequence[bytes]) -> list[Sequence[bytes]]:
    """The messages as a socket delivers them: BATCH at a time."""
    return [messages[first : first + BATCH] for first in range(0, len(messages), BATCH)]


class Decoding:
    """The decoder of a stream of which only some columns are read, and the rows it makes."""

    def __init__(self, columns: frozenset[str] | None) -> None:
        self.decode = JsonDecoder(columns).decode_many
        self.make_row: Any = dict if columns is None else (lambda row: row_class(columns)(**row))
        self.shape: Any = "dict" if columns is None else "struct"

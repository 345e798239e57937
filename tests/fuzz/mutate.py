"""Damage to bytes: flips, cuts, insertions, repetitions, and pieces of other good inputs."""

from __future__ import annotations

import random
from collections.abc import Sequence

WORDS = (
    b"\x00", b"\xff", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b'"', b"'", b"`", b"(", b")", b"[", b"]", b"{",
    b"}", b",", b":", b"\n", b"\t", b"- ", b"*", b"-1", b"0", b"1e999", b"9" * 40, b"NaN", b"null", b"true",
    b"&a", b"*a", b"!!int", b"SELECT", b" FROM ", b" WHERE ", b" GROUP BY ", b"TUMBLINGWINDOW(ss, 0)",
    b"#time(1 sec)", b" JOIN ", b"CASE ", b"--", b"/*", b"[0:1]", b"\\", b"\r\n\r\n", b"GET ",
    b"Content-Length: -1\r\n",
)  # fmt: skip
"""What trips parsers up."""

LENGTH_MAX = 20_000


def mutated(good: Sequence[bytes], dice: random.Random) -> bytes:
    """One of the good inputs, damaged in one to six places."""
    data = dice.choice(good)
    for _ in range(dice.choice((1, 1, 2, 3, 6))):
        data = dice.choice(DAMAGES)(data, good, dice)
    return data[:LENGTH_MAX]


def _span(data: bytes, dice: random.Random) -> tuple[int, int]:
    start = dice.randrange(len(data) + 1)
    return start, min(len(data), start + dice.choice((1, 2, 4, 10, 50, 400)))


def flip(data: bytes, good: Sequence[bytes], dice: random.Random) -> bytes:
    """Another byte in place of one."""
    at = dice.randrange(len(data) + 1)
    return data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]


def cut(data: bytes, good: Sequence[bytes], dice: random.Random) -> bytes:
    """A span less."""
    start, end = _span(data, dice)
    return data[:start] + data[end:]


def end_early(data: bytes, good: Sequence[bytes], dice: random.Random) -> bytes:
    """Nothing behind a place."""
    return data[: dice.randrange(len(data) + 1)]


def insert(data: bytes, good: Sequence[bytes], dice: random.Random) -> bytes:
    """A word that trips parsers up."""
    at = dice.randrange(len(data) + 1)
    return data[:at] + dice.choice(WORDS) + data[at:]


def repeat(data: bytes, good: Sequence[bytes], dice: random.Random) -> bytes:
    """A span many times."""
    start, end = _span(data, dice)
    return data[:end] + data[start:end] * dice.choice((1, 2, 30, 300)) + data[end:]


def splice(data: bytes, good: Sequence[bytes], dice: random.Random) -> bytes:
    """The end of another input."""
    other = dice.choice(good)
    return data[: dice.randrange(len(data) + 1)] + other[dice.randrange(len(other) + 1) :]


DAMAGES = (flip, cut, end_early, insert, repeat, splice)

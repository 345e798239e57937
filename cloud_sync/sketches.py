"""The bytes of uploaded sketches: their check, their merge and their results.

A gateway makes them (`sql.aggregates.sketches`), Spark's own functions merge theta and KLL sketches, and this
module reads them: formats of Apache DataSketches. Nothing that a gateway can upload may fail in Spark,
so every field is checked. This module needs nothing but the standard library: Spark's workers import it.
"""

from __future__ import annotations

import itertools
import json
import math
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

SKETCHES = ("theta", "kll", "top_k")
"""The merges of sketches: distinct values, numbers in order, frequent values."""
SKETCH_BYTES_MAX = 128 << 10
TOP_LG_SIZE = 10
TOP_ITEMS_MAX = (1 << TOP_LG_SIZE) * 3 // 4
SHOWN_TOP = 10
SHOWN_QUANTILES = {"p05": 0.05, "p50": 0.5, "p95": 0.95, "p99": 0.99}

_THETA_FAMILY, _KLL_FAMILY, _TOP_FAMILY = 3, 15, 10
_THETA_LG_K = 12
_SEED_HASH = 37836
"""The hash of the seed that Spark's functions use (9001)."""
_KLL_K, _KLL_M = 200, 8
_LARGEST = 2**63 - 1


class BadSketch(ValueError):
    """The bytes are no sketch of the contract; the text says why."""


class Theta(NamedTuple):
    """Hashes in order, all below `theta`, of a hash space that ends at 2^63 - 1."""

    theta: int
    hashes: tuple[int, ...]


class Ranks(NamedTuple):
    """A KLL sketch: the number of its values, the least and the greatest, and values with weights."""

    size: int
    least: float
    greatest: float
    weighted: tuple[tuple[float, int], ...]


class Top(NamedTuple):
    """Frequent items, with counts that are too low by at most `offset`;
    the items that left counted no more."""

    total: int
    offset: int
    counts: dict[str, int]


def check(kind: str, content: bytes) -> None:
    """Raise BadSketch unless the bytes are a sketch of this kind, over at least one value."""
    _require(len(content) <= SKETCH_BYTES_MAX, f"it has {len(content)} bytes; {SKETCH_BYTES_MAX} are allowed")
    try:
        READERS[kind](content)
    except (struct.error, UnicodeDecodeError):
        raise BadSketch("it is torn") from None


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise BadSketch(what)


# --- distinct values ----------------------------------------------------------------------------------------


def read_theta(content: bytes) -> Theta:
    """A compact theta sketch."""
    longs, version, family, _, _, flags, seed = struct.unpack_from("<BBBBBBH", content)
    _require((version, family, seed) == (3, _THETA_FAMILY, _SEED_HASH), "it is no compact theta sketch")
    _require(flags & ~0b100000 == 0b011010, "it is no theta sketch in order, or an empty one")
    if longs == 1:
        theta, (only,) = _LARGEST, struct.unpack("<q", content[8:])
        hashes: tuple[int, ...] = (only,)
    else:
        (count,) = struct.unpack_from("<I", content, 8)
        _require(longs in (2, 3) and 0 < count <= 1 << _THETA_LG_K, "it has no such number of values")
        theta = struct.unpack_from("<q", content, 16)[0] if longs == 3 else _LARGEST
        hashes = struct.unpack(f"<{count}q", content[8 * longs :])
    _require(hashes[0] > 0 and hashes[-1] < theta, "a hash is out of range")
    _require(all(a < b for a, b in itertools.pairwise(hashes)), "its hashes are not in order")
    return Theta(theta, hashes)


def distinct(content: bytes) -> int:
    """The estimated number of distinct values: exact up to 4,096.
    Of compressed sketches too, as Spark writes."""
    longs, version, _, _, count_bytes = struct.unpack_from("<BBBBB", content)
    if version == 4:
        theta = struct.unpack_from("<q", content, 8)[0] if longs > 1 else _LARGEST
        count = int.from_bytes(content[8 * longs : 8 * longs + count_bytes], "little")
    elif longs == 1:
        return 1
    else:
        count = struct.unpack_from("<I", content, 8)[0]
        theta = struct.unpack_from("<q", content, 16)[0] if longs > 2 else _LARGEST
    return int(count * _LARGEST / theta + 0.5)


# --- numbers in order ---------------------------------------------------------------------------------------


def read_kll(content: bytes) -> Ranks:
    """A KLL sketch of doubles."""
    ints, version, family, flags, k, m, unused = struct.unpack_from("<BBBBHBB", content)
    _require(
        (family, k, m, unused) == (_KLL_FAMILY, _KLL_K, _KLL_M, 0), f"it is no KLL sketch with k = {_KLL_K}"
    )
    if (ints, version) == (2, 2):
        (only,) = struct.unpack("<d", content[8:])
        _require(flags & ~2 == 4 and math.isfinite(only), "it is no sketch of one number")
        return Ranks(1, only, only, ((only, 1),))
    _require((ints, version) == (5, 1) and flags & ~2 == 0, "it is no KLL sketch of numbers")
    count, least_k, levels, unused = struct.unpack_from("<QHBB", content, 8)
    _require(
        (least_k, unused) == (_KLL_K, 0) and 0 < levels <= 55 and 1 < count < 2**62,
        "its size is out of range",
    )
    starts = (*struct.unpack_from(f"<{levels}I", content, 20), _kll_capacity(levels))
    least, greatest, *items = struct.unpack(f"<{2 + starts[-1] - starts[0]}d", content[20 + 4 * levels :])
    weighted = []
    for level, (start, end) in enumerate(itertools.pairwise(starts)):
        _require(starts[0] <= start <= end, "its levels overlap")
        of_level = items[start - starts[0] : end - starts[0]]
        is_sorted = all(a <= b for a, b in itertools.pairwise(of_level))
        _require(is_sorted or (not level and not flags & 2), "a level is not in order")
        weighted += [(item, 1 << level) for item in of_level]
    _require(sum(weight for _, weight in weighted) == count, "its weights are not those of its numbers")
    _require(
        -math.inf < least and greatest < math.inf and all(least <= item <= greatest for item in items),
        "a number is out of range",
    )
    return Ranks(count, least, greatest, tuple(sorted(weighted)))


def _kll_capacity(levels: int) -> int:
    return sum(max(_KLL_M, ((2 * _KLL_K << depth) // 3**depth + 1) // 2) for depth in range(levels))


def quantile(ranks: Ranks, part: float) -> float:
    """The smallest number that `part` of the numbers do not exceed,
    as Spark's `kll_sketch_get_quantile_double`."""
    if part <= 0:
        return ranks.least
    if part >= 1:
        return ranks.greatest
    wanted, seen = math.ceil(part * ranks.size), 0
    for item, weight in ranks.weighted:
        seen += weight
        if seen >= wanted:
            return item
    return ranks.greatest


# --- frequent values ----------------------------------------------------------------------------------------


def read_top(content: bytes) -> Top:
    """A sketch of frequent items of text."""
    longs, version, family, most, _, flags, _ = struct.unpack_from("<BBBBBBH", content)
    _require(
        (longs, version, family, most, flags) == (4, 1, _TOP_FAMILY, TOP_LG_SIZE, 0),
        "it is no sketch of frequent values",
    )
    count, _, total, offset = struct.unpack_from("<IIQQ", content, 8)
    _require(0 < count <= TOP_ITEMS_MAX and offset <= total < 2**62, "its size is out of range")
    weights = struct.unpack_from(f"<{count}Q", content, 32)
    _require(all(weights) and sum(weights) <= total, "its weights are out of range")
    counts: dict[str, int] = {}
    at = 32 + 8 * count
    for weight in weights:
        (length,) = struct.unpack_from("<I", content, at)
        text = content[at + 4 : at + 4 + length]
        _require(len(text) == length, "it is torn")
        counts[text.decode()] = weight
        at += 4 + length
    _require(at == len(content) and len(counts) == count, "it holds a value twice, or something else")
    return Top(total, offset, counts)


def merge_top(contents: Iterable[bytes]) -> bytes:
    """One sketch of several: counts and errors add up, and the rarest are dropped if there are too many."""
    counts: Counter[str] = Counter()
    total = offset = 0
    for content in contents:
        one = read_top(content)
        counts.update(one.counts)
        total, offset = total + one.total, offset + one.offset
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if len(ranked) > TOP_ITEMS_MAX:
        cut = ranked[TOP_ITEMS_MAX][1]
        ranked, offset = [(item, count - cut) for item, count in ranked if count > cut], offset + cut
    return write_top(total, offset, ranked)


def write_top(total: int, offset: int, ranked: Sequence[tuple[str, int]]) -> bytes:
    """The bytes of a sketch of frequent items."""
    items = [item.encode() for item, _ in ranked]
    size = min(max(3, (len(items) * 4 // 3).bit_length()), TOP_LG_SIZE)
    head = struct.pack(
        "<BBBBBBHIIQQ", 4, 1, _TOP_FAMILY, TOP_LG_SIZE, size, 0, 0, len(items), 0, total, offset
    )
    weights = struct.pack(f"<{len(items)}Q", *(count for _, count in ranked))
    return head + weights + b"".join(struct.pack("<I", len(item)) + item for item in items)


READERS = {"theta": read_theta, "kll": read_kll, "top_k": read_top}

# --- results as text ----------------------------------------------------------------------------------------


def text_of(kind: str, content: bytes) -> str:
    """The results of a sketch as JSON: quantiles, or the most frequent values with their numbers."""
    if kind == "kll":
        ranks = read_kll(content)
        shown: Mapping[str, float] = {name: quantile(ranks, part) for name, part in SHOWN_QUANTILES.items()}
        return json.dumps({"n": ranks.size, "min": ranks.least, **shown, "max": ranks.greatest})
    found = read_top(content)
    ranked = sorted(found.counts.items(), key=lambda item: (-item[1], item[0]))[:SHOWN_TOP]
    return json.dumps([[item, count + found.offset] for item, count in ranked], ensure_ascii=False)

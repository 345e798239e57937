"""The benchmarks of patterns: what an event costs from payload to match, with so many searches alive."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.measure import Bench, Result, against_decoding, against_smallest, in_decodings, in_turns
from benchmarks.payloads import START_MS
from benchmarks.rules import messages

FOLLOWED_BY = (
    "select a.k as k, b.seq as seq from pattern [every a=m(n=1) -> b=m(k=a.k, n=2) where timer:within({})]"
)
ABSENCE = "select a.k as k from pattern [every a=m(n=1) -> (timer:interval(30 sec) and not m(n=2, k=a.k))]"
RECOGNIZE = (
    "select * from m match_recognize (partition by dev "
    "measures A.seq as first_seq, last(B.temp) as low, last(C.temp) as high, last(D.seq) as last_seq "
    "pattern (A B+ C+ D+) define B as B.temp < prev(B.temp), C as C.temp > prev(C.temp), "
    "D as D.temp < prev(D.temp))"
)


def payload(key: int, kind: int, number: int) -> bytes:
    """A message of a device that says `n`: 1 begins a search, 2 ends it, 3 is none of its business."""
    return (
        b'{"k":"pump-%06d","n":%d,"ts":%d,"seq":%d,'
        b'"status":"ok","site":"north","hum":%d.5,"rpm":%d,"shift":"late"}'
        % (key, kind, START_MS, number, 30 + number % 30, 1400 + number % 100)
    )


def pairs(live: int, count: int) -> list[bytes]:
    """Each device begins a search and ends it when `live` others have begun theirs."""
    made = []
    for number in range(count // 2):
        made.append(payload(number % (2 * live), 1, 2 * number))
        made.append(payload((number + live) % (2 * live), 2, 2 * number + 1))
    return made


def followed_by() -> Result:
    """A search begins or ends with every event; 1,000 are alive."""
    return against_decoding("pattern_followed_by", [FOLLOWED_BY.format("10 sec")], pairs(1_000, 100_000), 6.0)


def many_alive() -> Result:
    """The same with 100,000 alive."""
    rule = [FOLLOWED_BY.format("1 hour")]
    benches = {live: Bench(rule, pairs(live, 400_000)) for live in (1_000, 100_000)}
    return against_smallest("pattern_1e5", benches, 2.0, rounds=3)


def idle() -> Result:
    """100,000 searches are alive, and no event fits any."""
    bench = Bench([FOLLOWED_BY.format("1 day")], [payload(key, 1, key) for key in range(100_000)])
    bench.warm()
    bench.feed([payload(key % 1_000, 3, key) for key in range(50_000)])
    decoding, whole = in_turns((bench.decode, bench.run), 5)
    return in_decodings("pattern_idle", bench.events, decoding, whole, 1.6)


CASES: dict[str, Callable[[], Result]] = {
    "pattern_followed_by": followed_by,
    "pattern_1e5": many_alive,
    "pattern_idle": idle,
    "pattern_absence": lambda: against_decoding("pattern_absence", [ABSENCE], pairs(10_000, 100_000), None),
    "recognize": lambda: against_decoding("recognize", [RECOGNIZE], messages(100), 6.0, rounds=5),
}

"""The benchmarks of rules: what an event costs from payload to result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from random import Random

from benchmarks.measure import Bench, Result, against_decoding, against_smallest
from benchmarks.payloads import EVENTS_PER_MS, payloads

COUNT = 100_000
EVENTS_PER_WINDOW = 8_000_000

SINGLE: dict[str, tuple[str, float | None]] = {
    "filter": ("SELECT * FROM m WHERE temp > 95", 1.6),
    "filter_project": (
        "SELECT dev, temp * 1.8 + 32 AS fahrenheit FROM m WHERE temp > 90 AND status = 'ok'",
        1.6,
    ),
    "tumbling": (
        "SELECT dev, avg(temp) AS a, count(*) AS c, max(temp) AS hi FROM m "
        "GROUP BY dev, TUMBLINGWINDOW(ss, 10)",
        2.5,
    ),
    "hopping": (
        "SELECT dev, avg(temp) AS a, count(*) AS c, max(temp) AS hi FROM m "
        "GROUP BY dev, HOPPINGWINDOW(ss, 10, 1)",
        2.8,
    ),
    "sliding": ("SELECT avg(temp) AS a FROM m GROUP BY SLIDINGWINDOW(ss, 10)", 4.0),
    "length_avg": ("select avg(temp) as a from m#length(1000)", 3.5),
    "length_minmax": ("select min(temp) as lo, max(temp) as hi from m#length(1000)", None),
    "session": (
        "SELECT dev, avg(temp) AS a, count(*) AS c FROM m GROUP BY dev, SESSIONWINDOW(ss, 60, 5)",
        2.5,
    ),
    "count": ("SELECT dev, avg(temp) AS a, max(temp) AS hi FROM m GROUP BY dev, COUNTWINDOW(1000)", 2.5),
    "over_partition": (
        "SELECT dev, avg(temp) AS a, count(*) AS c FROM m "
        "GROUP BY TUMBLINGWINDOW(ss, 10) OVER(PARTITION BY dev)",
        4.0,
    ),
    "state": ("SELECT avg(temp) AS a, count(*) AS c FROM m GROUP BY STATEWINDOW(temp > 95, temp < 25)", 3.0),
    "sliding_delay": ("SELECT avg(temp) AS a FROM m GROUP BY SLIDINGWINDOW(ss, 10, 1)", 5.0),
    "sliding_rows": ("SELECT dev, temp FROM m GROUP BY SLIDINGWINDOW(ms, 1)", None),
    "time": ("select dev, avg(temp) as a from m#time(10 sec) group by dev", None),
    "ext_timed": ("select dev, avg(temp) as a from m#ext_timed(ts, 10 sec) group by dev", None),
    "unique": ("select avg(temp) as a, count(*) as c from m#unique(dev)", None),
    "length_batch": ("select dev, avg(temp) as a from m#length_batch(10000) group by dev", None),
    "time_batch": (
        "select dev, avg(temp) as a, count(*) as c, max(temp) as hi from m#time_batch(10 sec) group by dev",
        None,
    ),
    "lag": ("SELECT dev, temp - lag(temp) AS d FROM m WHERE temp > 90", None),
}
"""Name, rule and bar (cost of an event in costs of decoding it)."""


@cache
def messages(devices: int, count: int = COUNT) -> list[bytes]:
    """The payloads of so many devices, made once."""
    return payloads(count, devices)


def single(name: str) -> Result:
    """One rule."""
    rule, bar = SINGLE[name]
    return against_decoding(name, [rule], messages(100), bar)


def equality_rules(rules: int) -> Result:
    """Rules that each want one of a thousand devices."""
    texts = [f"SELECT dev, temp FROM m WHERE dev = 'pump-{number:04d}'" for number in range(rules)]
    return against_decoding(f"rules_{rules}", texts, messages(1000), 3.0 if rules == 1000 else None, rounds=5)


def many(name: str, rules: Sequence[str], bar: float | None = None) -> Result:
    """Many aggregating rules on one stream of a hundred devices."""
    return against_decoding(name, rules, messages(100), bar, rounds=3)


def sharing_rules(window: str) -> list[str]:
    """Three hundred aggregating rules over one kind of window, with different HAVING."""
    return [
        f"SELECT dev, avg(temp) AS a, count(*) AS c FROM m GROUP BY dev, {window} "
        f"HAVING avg(temp) > {number / 3}"
        for number in range(300)
    ]


def mixed_rules() -> list[str]:
    """A hundred rules over one kind of window, with different aggregates of two columns."""
    choice = Random(1)
    calls = [
        f"{name}({column})" for name in ("avg", "max", "min", "sum", "count") for column in ("temp", "hum")
    ]
    return [
        f"SELECT dev, {call} AS x, count(*) AS c FROM m GROUP BY dev, TUMBLINGWINDOW(ss, 10) "
        f"HAVING {call} > {number}"
        for number, call in enumerate(choice.choices(calls, k=100))
    ]


def event_time_tumbling() -> Result:
    """The rule `tumbling` in event time."""
    rounds = 5
    stamped = messages(100, (rounds + 1) * COUNT)
    return against_decoding(
        "event_time_tumbling", [SINGLE["tumbling"][0]], stamped, 4.0, rounds, event_time=True
    )


def event_time_rules() -> Result:
    """A hundred rules in event time that each want one of a hundred devices."""
    texts = [
        f"SELECT dev, avg(temp) AS a, count(*) AS c FROM m WHERE dev = 'pump-{number:04d}' "
        "GROUP BY dev, TUMBLINGWINDOW(ss, 10)"
        for number in range(100)
    ]
    rounds = 3
    stamped = messages(100, (rounds + 1) * COUNT)
    return against_decoding("event_time_100", texts, stamped, 4.0, rounds, event_time=True)


def groups() -> Result:
    """Ten to a million group keys: windows in which each key has eight events or more, opening and closing
    included."""
    rule = "SELECT dev, avg(temp) AS a, count(*) AS c FROM m GROUP BY dev, TUMBLINGWINDOW(ms, {})"
    passes = EVENTS_PER_WINDOW // 1_000_000

    def bench(devices: int) -> Bench:
        count = max(200_000, devices)
        made = Bench([rule.format(passes * count // EVENTS_PER_MS)], payloads(count, devices))
        made.passes = passes
        return made

    benches = {devices: bench(devices) for devices in (10, 1000, 100_000, 1_000_000)}
    return against_smallest("groups_1e6", benches, 3.0, 2)


def window_length() -> Result:
    """Windows of a thousand to a million events."""
    sizes = (1000, 10_000, 100_000, 1_000_000)
    stream = payloads(1_100_000, 100)
    benches = {size: Bench([f"select avg(temp) as a from m#length({size})"], stream) for size in sizes}
    return against_smallest("window_1e6", benches, None, 2)


def hopping_overlap() -> Result:
    """Windows of six to six hundred hops."""
    rule = (
        "SELECT dev, avg(temp) AS a, count(*) AS c, max(temp) AS hi FROM m "
        "GROUP BY dev, HOPPINGWINDOW(ss, {}, 1)"
    )
    benches = {hops: Bench([rule.format(hops)], messages(100)) for hops in (6, 60, 600)}
    for _ in range(70):
        benches[600].warm()  # 600 s of events
    return against_smallest("hopping_600", benches, 1.3)


CASES: dict[str, Callable[[], Result]] = {
    **{name: partial(single, name) for name in SINGLE},
    **{f"rules_{rules}": partial(equality_rules, rules) for rules in (1, 10, 100, 1000)},
    "tumbling_300": lambda: many("tumbling_300", sharing_rules("TUMBLINGWINDOW(ss, 10)"), 240.0),
    "hopping_300": lambda: many("hopping_300", sharing_rules("HOPPINGWINDOW(ss, 10, 1)"), 4.0),
    "tumbling_mixed": lambda: many("tumbling_mixed", mixed_rules()),
    "event_time_100": event_time_rules,
    "event_time_tumbling": event_time_tumbling,
    "groups_1e6": groups,
    "window_1e6": window_length,
    "hopping_600": hopping_overlap,
}

"""How the operators' cost per event grows with the window: it must not, beyond what caches
and logarithms explain."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.measure import Bench, Result, in_turns
from benchmarks.payloads import EVENTS_PER_MS, payloads

SIZES = (1_000, 10_000, 100_000)
COUNT = 20_000

WINDOWS: dict[str, Callable[[int], str]] = {
    "length": lambda size: f"select avg(temp) as a, max(temp) as hi from m#length({size})",
    "time": lambda size: f"select avg(temp) as a, max(temp) as hi from m#time({size // EVENTS_PER_MS} msec)",
    "sort": lambda size: f"select avg(temp) as a, max(temp) as hi from m#sort({size}, temp)",
    "hopping": lambda size: (
        "SELECT avg(temp) AS a, max(temp) AS hi FROM m GROUP BY "
        f"HOPPINGWINDOW(ms, {size // EVENTS_PER_MS}, {size // EVENTS_PER_MS // 10})"
    ),
}


def window_growth() -> Result:
    """The cost of an event in full windows of a thousand to a hundred thousand events."""
    result = Result("window_growth", unit="times the window of 1000")
    for name, rule in WINDOWS.items():
        costs = []
        for size in SIZES:
            bench = Bench([rule(size)], payloads(COUNT, 100))
            for _ in range(max(1, size // COUNT) + 1):
                bench.warm()
            (seconds,) = in_turns((bench.run,), 3)
            costs.append(seconds / bench.events * 1e9)
        growth = [cost / costs[0] for cost in costs]
        result.numbers |= {f"{name}_{size}_ns": cost for size, cost in zip(SIZES, costs, strict=True)}
        cells = ", ".join(
            f"{size:,}: {cost:,.0f} ns ({times:.2f})"
            for size, cost, times in zip(SIZES, costs, growth, strict=True)
        )
        result.lines.append(f"window_growth {name}: {cells}")
    result.ratio = max(value for value in _last_growths(result.numbers))
    return result


def _last_growths(numbers: dict[str, float]) -> list[float]:
    return [numbers[f"{name}_{SIZES[-1]}_ns"] / numbers[f"{name}_{SIZES[0]}_ns"] for name in WINDOWS]


CASES: dict[str, Callable[[], Result]] = {"window_growth": window_growth}

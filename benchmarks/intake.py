"""The benchmarks of the MQTT intake, in times a bare stock-paho subscriber; `mqtt_intake` measures."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from benchmarks.measure import Result

BAR = 2.5


@cache
def measured() -> dict[str, float]:
    """The numbers of one run for both qualities of service."""
    from benchmarks.mqtt_intake import run

    return run()


def at_qos(qos: int) -> Result:
    """The intake's rate at one quality of service."""
    numbers = {name: value for name, value in measured().items() if name.startswith(f"mqtt_qos{qos}")}
    name = f"mqtt_qos{qos}"
    cpu = f"{name} processor time: {numbers[f'{name}_cpu']:.2f} times less than stock paho"
    return Result(
        name,
        numbers[name],
        "times stock paho (more is better)",
        events_per_s=numbers[f"{name}_intake_per_s"],
        bar=BAR,
        lines=[cpu],
        numbers=numbers,
    )


CASES: dict[str, Callable[[], Result]] = {"mqtt_qos0": lambda: at_qos(0), "mqtt_qos1": lambda: at_qos(1)}

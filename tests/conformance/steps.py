"""Steps of a scenario as the engine is given them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Step = dict[str, Any]


def batches(steps: Iterable[Step], *, together: bool) -> list[Step]:
    """The steps, each `send` with its list of `events`; `together`: consecutive sends
    to one stream as one step.

    A step made of several is `merged`: its emissions count as one.
    """
    out: list[Step] = []
    for step in steps:
        if "send" not in step:
            out.append(step)
            continue
        last = out[-1] if out else {}
        if together and last.get("send") == step["send"]:
            last["events"].append(step["event"])
            last["expect"] += step.get("expect", [])
            last["merged"] = True
        else:
            out.append({**step, "events": [step["event"]], "expect": list(step.get("expect", []))})
    return out

"""Traces: scenarios of one EPL statement over events named by letters, in two lines.

    # A new event of a key takes the place of the one before.
    select irstream id from E#unique(k)
        a(x) +[a], b(y) +[b], c(x) +[c] -[a]

`a(x):3/500@1000` is event a with key x, number 3 (`n`, and `v` as a float) and time stamp 500, arriving at
1000 ms; `@2500` moves time. Without a time it comes at that of the step before, and its time stamp is that
time. What a step posts stands behind it: `+[a b] -[c]`, the values of column `id`; `-[c]@5000` for an instant
that the step has passed; `none` for a post without rows. `restart` is a step too. Statements are deployed
at 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.scenarios.format import FormatError, Scenario, read, read_text, show_instant

TYPE = "schema E(id string, k string, n int, v double, ts long)"

STEP = re.compile(
    r"(?P<id>[a-z]\w*)?(?:\((?P<key>\w+)\))?(?::(?P<number>-?\d+))?(?:/(?P<stamp>-?\d+))?(?:@(?P<at>\d+))?"
    r"(?P<posts>(?:\s*(?:[+-]\[[^\]]*\](?:@\d+)?|none))*)\s*"
)
POST = re.compile(r"(?P<sign>[+-])\[(?P<values>[^\]]*)\](?:@(?P<at>\d+))?|none")


def files_of(folder: Path) -> list[Path]:
    """The files of scenarios below a folder, those of traces last."""
    return [*sorted(folder.glob("*/*.scenario")), *sorted(folder.glob("*/*.traces"))]


def read_all(path: Path) -> list[Scenario]:
    """The scenarios of a file of either kind. Raises FormatError with the line that cannot be read."""
    return read_traces(path) if path.suffix == ".traces" else [read(path)]


def read_traces(path: Path) -> list[Scenario]:
    """The scenarios of a file of traces. Raises FormatError with the line that cannot be read."""
    found: list[Scenario] = []
    story = epl = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#"):
            story = line
        elif line.startswith(" "):
            try:
                text = "\n".join([story, TYPE, "rule r", f"    {epl}", *_steps(line)])
            except ValueError as error:
                raise FormatError(f"{path}:{number}: {error}") from error
            found.append(read_text(path, text))
        elif line:
            epl = line
    return found


def _steps(trace: str) -> Iterator[str]:
    now = 0
    yield "at 0s"
    for word in trace.split(","):
        if word.strip() == "restart":
            yield "restart"
            continue
        step = STEP.fullmatch(word.strip())
        if step is None:
            raise ValueError(f"this step cannot be read: {word.strip()}")
        now = int(step["at"] or now)
        yield f"at {show_instant(now)}{_event(step, now)}"
        for post in POST.finditer(step["posts"]):
            instant = f"@{show_instant(int(post['at']))} " if post["at"] else ""
            yield from (f"    {instant}{post['sign']} id={value}" for value in (post["values"] or "").split())
            yield from ["    rows 0"] if post[0] == "none" else []


def _event(step: re.Match[str], now: int) -> str:
    if step["id"] is None:
        return ""
    number = step["number"] or "NULL"
    fraction = "NULL" if step["number"] is None else f"{number}.0"
    key, stamp = step["key"] or "NULL", step["stamp"] or now
    return f" E id={step['id']} k={key} n={number} v={fraction} ts={stamp}"

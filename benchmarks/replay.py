"""`penstock replay`: what a recorded message costs, from the file to the printed rows."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Result, in_turns
from benchmarks.payloads import Decoding, batched, payloads

COUNT = 500_000
RULE = """
streams: [{name: m, datasource: m}]
rules:
  - id: t
    sql: SELECT dev, avg(temp) AS a, count(*) AS c, max(temp) AS hi
         FROM m GROUP BY dev, TUMBLINGWINDOW(ss, 10)
    actions: [{log: {}}]
"""


def replay() -> Result:
    """Half a million recorded messages through a tumbling window."""
    from edge.cli import main

    messages = payloads(COUNT, 100)
    batches = batched(messages)
    decode = Decoding(frozenset(("dev", "temp", "ts"))).decode
    with tempfile.TemporaryDirectory() as folder:
        rule, data = Path(folder, "rule.yaml"), Path(folder, "data.jsonl")
        rule.write_text(RULE, encoding="utf-8")
        data.write_bytes(b"\n".join(messages) + b"\n")

        def run() -> None:
            with contextlib.redirect_stdout(io.StringIO()):
                main(["replay", str(rule), str(data)])

        decoding, whole = in_turns((lambda: [decode(batch) for batch in batches], run), 3)
    return Result(
        "replay",
        whole / decoding,
        events_per_s=COUNT / whole,
        cost_ns=whole / COUNT * 1e9,
        base_ns=decoding / COUNT * 1e9,
        bar=4.0,
    )


CASES: dict[str, Callable[[], Result]] = {"replay": replay}

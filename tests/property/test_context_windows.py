"""A window in GROUP BY in the partitions of a context shows what it shows over the events of each partition
alone: as the twin of windows computes it, in processing time and in event time,
at every restart, in batches."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.compare import text_of
from tests.property.queries import RULES
from tests.property.streams import Run, Step, stream
from tests.reference import samples

KEYED = "create context C partition by k from E"
SPAN = "create context C start E(n = 1) end E(n = 4)"
KEYS = ("A", "B", None)


def shown(run: Run) -> list[tuple[int, str]]:
    """The rows with their instants; what several partitions show at one instant may be one emission."""
    return sorted(
        (out.at_ms, text_of(row)) for out in run.emissions for row in out.inserted if out.kind == "rows"
    )


def by_twin(run: Run, runs_of_steps: list[list[Step]]) -> list[tuple[int, str]]:
    """What the twin shows over each partition's steps."""
    found = [each for steps in runs_of_steps for each in samples.run(run.plan, steps)[0]]
    return sorted((at_ms, text_of(row)) for at_ms, rows in found for row in rows)


def steps_of(key: Any, steps: list[Step]) -> list[Step]:
    """The steps without the events of other keys."""
    return [step for step in steps if "event" not in step or step["event"]["k"] == key]


@given(query=RULES, steps=stream(), restarts=st.booleans())
def test_keyed_in_processing_time(query: str, steps: list[Step], restarts: bool) -> None:
    run = Run(f"CONTEXT C {query}", context=KEYED)
    for step in steps:
        run.step(step)
        if restarts:
            run.restart()
    assert shown(run) == by_twin(run, [steps_of(key, steps) for key in KEYS])


@given(query=RULES, steps=stream(), tolerance=st.sampled_from([0, 500, 2000]), restarts=st.booleans())
def test_keyed_in_event_time(query: str, steps: list[Step], tolerance: int, restarts: bool) -> None:
    run = Run(f"CONTEXT C {query}", context=KEYED, event_time=True, late_tolerance_ms=tolerance)
    whole = Run(query, event_time=True, late_tolerance_ms=tolerance)
    late: list[Any] = []
    for step in [*steps, {"flush": True}]:
        run.step(step)
        late += [row["id"] for out in whole.step(step) if out.kind == "late" for row in out.inserted]
        if restarts and "flush" not in step:
            run.restart()
    # The watermark is that of the rule: what is late for it reaches no partition.
    in_time = [step for step in steps if "event" not in step or step["event"]["id"] not in late]
    options = run.plan.options
    assert sum(out.kind == "late" for out in run.emissions) == len(late)
    patient = Run(f"CONTEXT C {query}", context=KEYED, event_time=True, late_tolerance_ms=10**9)
    assert options.late_tolerance_ms == tolerance
    assert shown(run) == by_twin(patient, [[*steps_of(key, in_time), {"flush": True}] for key in KEYS])


@given(
    query=st.sampled_from(
        [
            "SELECT a.id AS a, b.id AS b FROM E AS a INNER JOIN E AS b ON a.n = b.n "
            "GROUP BY TUMBLINGWINDOW(ss, 1)",
            "SELECT count(*) AS c, sum(b.v) AS s FROM E AS a LEFT JOIN E AS b ON a.n < b.n "
            "GROUP BY HOPPINGWINDOW(ss, 2, 1)",
            "SELECT a.n AS n, count(*) AS c FROM E AS a FULL JOIN E AS b ON a.n = b.n + 1 WHERE a.v > 0 "
            "GROUP BY a.n, SLIDINGWINDOW(ss, 1)",
            "SELECT a.id AS a, b.id AS b FROM E AS a CROSS JOIN E AS b "
            "GROUP BY SESSIONWINDOW(ss, 2, 1) ORDER BY b.v LIMIT 3",
        ]
    ),
    steps=stream(),
    restarts=st.booleans(),
)
def test_a_join_in_each_partition_is_the_join_of_its_events(
    query: str, steps: list[Step], restarts: bool
) -> None:
    run = Run(f"CONTEXT C {query}", context=KEYED)
    for step in steps:
        run.step(step)
        if restarts:
            run.restart()
    alone = [Run(query).all(steps_of(key, steps)) for key in KEYS]
    assert shown(run) == sorted(row for each in alone for row in shown(each))


@given(query=RULES, steps=stream())
def test_an_open_window_goes_with_its_span(query: str, steps: list[Step]) -> None:
    run = Run(f"CONTEXT C {query}", context=SPAN).all(steps)
    spans: list[list[Step]] = []
    is_open, now = False, 0
    for step in steps:
        if "event" not in step:
            now = step["advance"]
        elif not is_open and step["event"]["n"] == 1:
            is_open = True
            spans.append([{"advance": now}])
        elif is_open and step["event"]["n"] == 4:
            is_open = False
        if is_open:
            spans[-1].append(step)
    assert shown(run) == by_twin(run, spans)


@given(query=RULES, steps=stream())
def test_batches_change_nothing(query: str, steps: list[Step]) -> None:
    batches: list[Step] = []
    for step in steps:
        if "event" in step and batches and "events" in batches[-1]:
            batches[-1]["events"].append(step["event"])
        else:
            batches.append({"events": [step["event"]]} if "event" in step else dict(step))
    single = Run(f"CONTEXT C {query}", context=KEYED).all(steps)
    batched = Run(f"CONTEXT C {query}", context=KEYED).all(batches)
    assert shown(batched) == shown(single)


@given(
    context=st.sampled_from(
        [
            KEYED,
            SPAN,
            "create context C partition by k from E terminated after 1 sec",
            "create context C start E(n = 1) end after 1 sec",
            "create context C initiated by E(n = 1) as s terminated by E(n = 4, k = s.k)",
        ]
    ),
    query=st.sampled_from(
        [
            "SELECT context.id AS i, count(*) AS c, sum(v) AS s FROM E",
            "SELECT context.id AS i, count(*) AS c FROM E OUTPUT LAST EVERY 2 EVENTS",
            "SELECT context.id AS i, sum(n) AS s FROM E OUTPUT LAST EVERY 1 SEC",
            "SELECT count(*) AS c, context.id AS i FROM E OUTPUT LAST WHEN TERMINATED",
            "SELECT id, context.id AS i, avg(n) AS a FROM E#time(1 sec)",
        ]
    ),
    steps=stream(),
)
def test_event_time_is_processing_time_at_the_events_own_instants(
    context: str, query: str, steps: list[Step]
) -> None:
    events = sorted((step["event"] for step in steps if "event" in step), key=lambda event: event["ts"])
    timed = Run(f"CONTEXT C {query}", context=context, event_time=True)
    timed.step({"events": events})
    one_by_one = Run(f"CONTEXT C {query}", context=context)
    for event in events:
        one_by_one.step({"advance": event["ts"]})
        one_by_one.step({"event": event})
    # The watermark has come to the newest event: what is due at its instant is done.
    assert shown(timed) == shown(one_by_one)

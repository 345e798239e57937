"""Log lines: one per event, quoted, redacted, and not a thousand times the same."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from edge.base import logs
from tests.support.waiting import wait_for


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    logs.configure("debug", stream)
    yield stream
    logger = logging.getLogger("penstock")
    logger.handlers.clear()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)


def test_a_line_has_level_event_and_fields(stream: io.StringIO) -> None:
    logging.getLogger("penstock.x").warning(
        "rule.bad", extra={"rule": "a", "text": 'two "words"\nand a line', "n": None}
    )
    line = stream.getvalue()
    assert line.count("\n") == 1
    assert line.startswith("time=20")
    assert line.rstrip().endswith(r'level=warning event=rule.bad rule=a text="two \"words\"\nand a line"')


class Limited:
    """A limiter under a clock that the test sets, and the lines that it printed late."""

    def __init__(self) -> None:
        self.now_ms, self.late = 0, list[logging.LogRecord]()
        self.limiter = logs.RepeatFilter(self.late.append, lambda: self.now_ms)

    def passes(self, at_ms: int, event: str = "again", **fields: object) -> bool:
        self.now_ms = at_ms
        return bool(self.limiter.filter(logging.makeLogRecord({"msg": event, **fields})))


def test_repeats_are_counted_instead_of_printed() -> None:
    limited = Limited()
    passed = [limited.passes(at_ms, rule="a") for at_ms in (0, 1_000, 9_999, 10_000, 30_000)]
    assert passed == [True, False, False, True, True]


def test_another_subject_is_another_matter(stream: io.StringIO) -> None:
    for field in logs.SUBJECTS:
        for name in ("a", "b"):
            logging.getLogger("penstock.x").info("again", extra={field: name})
        assert f"{field}=a\n" in stream.getvalue()
        assert f"{field}=b\n" in stream.getvalue()


def test_the_next_line_tells_how_many_were_left_out() -> None:
    limited, later = Limited(), logging.makeLogRecord({"msg": "again"})
    assert [limited.passes(0) for _ in range(3)] == [True, False, False]
    limited.now_ms = 11_000
    assert limited.limiter.filter(later)
    assert vars(later)["repeated"] == 2


def test_the_last_of_repeated_events_is_printed_late() -> None:
    """A connection that breaks and comes back within seconds must not look broken for ever."""
    limited = Limited()
    assert limited.passes(0, "connected", n=1)
    assert limited.passes(2_000, "lost")
    assert [limited.passes(at_ms, "connected", n=at_ms) for at_ms in (2_500, 3_000)] == [False, False]
    limited.limiter.catch_up()
    assert limited.late == []
    limited.now_ms = 10_000
    limited.limiter.catch_up()
    assert [(record.msg, vars(record)["n"], vars(record)["repeated"]) for record in limited.late] == [
        ("connected", 3_000, 1)
    ]
    assert not limited.passes(15_000, "connected"), "the time begins anew"


def test_late_lines_come_in_the_order_of_their_times() -> None:
    limited = Limited()
    for at_ms, event in ((0, "connected"), (5_000, "lost"), (6_000, "connected"), (7_000, "lost")):
        limited.passes(at_ms, event, created=at_ms / 1_000)
    limited.passes(8_000, "connected", created=8.0)
    limited.now_ms = 11_000
    limited.limiter.catch_up()
    assert [record.msg for record in limited.late] == ["lost", "connected"], "the last line is the last state"


def test_a_held_line_comes_before_one_that_ends_what_it_says() -> None:
    """A failure that is printed behind its recovery would look as if it went on."""
    limited = Limited()
    assert [limited.passes(at_ms, "disk.failed") for at_ms in (0, 1_000, 2_000)] == [True, False, False]
    assert limited.passes(2_500, "disk.failed", rule="a")
    assert not limited.passes(2_600, "disk.failed", rule="a")
    assert limited.passes(2_700, "net.recovered")
    assert limited.late == []
    assert limited.passes(3_000, "disk.recovered")
    assert [(record.msg, vars(record)["repeated"]) for record in limited.late] == [("disk.failed", 1)]
    limited.now_ms = 30_000
    limited.limiter.catch_up()
    assert [vars(record).get("rule") for record in limited.late] == [None, "a"]


def test_nothing_is_printed_late_that_another_line_has_replaced() -> None:
    limited = Limited()
    assert [limited.passes(at_ms) for at_ms in (0, 5_000, 10_000)] == [True, False, True]
    limited.now_ms = 30_000
    limited.limiter.catch_up()
    assert limited.late == []


def test_the_late_line_comes_by_itself(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "REPEAT_MS", 50)
    for number in range(3):
        logging.getLogger("penstock.x").info("again", extra={"n": number})
    wait_for(lambda: "n=2 repeated=1" in stream.getvalue(), what="the last line")


def test_each_answer_to_a_change_of_a_rule_file_is_told() -> None:
    limiter = logs.RepeatFilter()
    made = [
        logging.makeLogRecord({"msg": "rule_file.problem", "file": "a.yaml", "created": 0.0})
        for _ in range(2)
    ]
    assert [limiter.filter(record) for record in made] == [True, True], (
        "a file with two problems has two lines"
    )


def test_results_are_never_limited(stream: io.StringIO) -> None:
    for _ in range(3):
        logging.getLogger(logs.RESULTS_LOGGER).info("rule.result", extra={"rule": "a"})
    assert stream.getvalue().count("rule.result") == 3


def test_secrets_are_not_printed(stream: io.StringIO) -> None:
    logs.register_secret("hunter2-secret")
    try:
        logging.getLogger("penstock.x").info("sink.failed", extra={"url": "http://u:hunter2-secret@h/"})
    finally:
        logs._secrets.clear()
    assert "hunter2" not in stream.getvalue()
    assert "http://u:***@h/" in stream.getvalue()


def test_a_trace_is_one_line_too(stream: io.StringIO) -> None:
    try:
        raise ValueError("inside")
    except ValueError:
        logging.getLogger("penstock.x").exception("defect")
    assert stream.getvalue().count("\n") == 1
    assert "ValueError: inside" in stream.getvalue()

"""Log lines: one per event, quoted, redacted, and not a thousand times the same."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from edge.base import logs


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


def test_repeats_are_counted_instead_of_printed(stream: io.StringIO) -> None:
    log = logging.getLogger("penstock.x")
    limiter = logging.getLogger("penstock").handlers[0].filters[0]
    assert isinstance(limiter, logs.RepeatFilter)
    record = log.makeRecord(log.name, logging.INFO, __file__, 1, "again", (), None, extra={"rule": "a"})
    passed = []
    for second in (0.0, 1.0, 9.9, 10.0, 30.0):
        record.created = 1_000_000 + second
        passed.append(bool(limiter.filter(record)))
    assert passed == [True, False, False, True, True]
    record.created += 20
    for field in logs.SUBJECTS:
        for name in ("a", "b"):
            log.info("again", extra={field: name})
        assert f"{field}=a\n" in stream.getvalue()
        assert f"{field}=b\n" in stream.getvalue(), "another rule, table … is another matter"


def test_the_next_line_tells_how_many_were_left_out() -> None:
    limiter = logs.RepeatFilter()
    record = logging.makeLogRecord({"msg": "again", "created": 0.0})
    later = logging.makeLogRecord({"msg": "again", "created": 11.0})
    assert [limiter.filter(record) for _ in range(3)] == [True, False, False]
    assert limiter.filter(later)
    assert vars(later)["repeated"] == 2


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

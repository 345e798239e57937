"""Prometheus text."""

from __future__ import annotations

from edge.monitor.metrics import LABEL_SETS_MAX, METRICS, render, sample


def test_samples_are_grouped_under_help_and_type() -> None:
    text = render(
        [
            sample("penstock_rule_rows_total", 3, rule="a"),
            sample("penstock_up_seconds", 1.5),
            sample("penstock_rule_rows_total", 4, rule='b"\n\\'),
        ]
    )
    assert text.splitlines() == [
        "# HELP penstock_up_seconds Seconds since the daemon started.",
        "# TYPE penstock_up_seconds gauge",
        "penstock_up_seconds 1.5",
        "# HELP penstock_rule_rows_total Rows a rule has put out.",
        "# TYPE penstock_rule_rows_total counter",
        'penstock_rule_rows_total{rule="a"} 3',
        'penstock_rule_rows_total{rule="b\\"\\n\\\\"} 4',
    ]


def test_labels_are_bounded_and_the_sum_stays_right() -> None:
    text = render(
        sample("penstock_rule_rows_total", 1, rule=f"r{number}") for number in range(LABEL_SETS_MAX + 7)
    )
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == LABEL_SETS_MAX + 1
    assert lines[-1] == 'penstock_rule_rows_total{rule="other"} 7'


def test_names_follow_the_conventions() -> None:
    for name, (kind, text) in METRICS.items():
        assert name.startswith("penstock_")
        assert name.endswith("_total") == (kind == "counter"), name
        assert text.endswith(".")

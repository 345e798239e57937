"""Options that have no effect on the query of their rule: each gets a note, because its author expected
one."""

from __future__ import annotations

from collections.abc import Iterator

from rules.options import Options
from sql import Plan

EVENT_TIME_ONLY = ("late_tolerance_ms", "idle_timeout_ms", "max_future_ms")
OF_PATTERNS = ("max_pattern_partials", "pattern_overflow", "max_pattern_rows", "max_pattern_keys")
EMPTY_WINDOWS = ("emit_empty", "max_empty_windows")


def idle_options(options: Options, plan: Plan) -> Iterator[tuple[str, str]]:
    """The options without effect, by their YAML key, each with the reason."""
    for name in options.model_fields_set:
        field = Options.model_fields[name]
        reason = _why_idle(name, options, plan)
        if reason is not None and getattr(options, name) not in (
            field.default,
            _default_there(name, options),
        ):
            yield str(field.alias), reason


def _default_there(name: str, options: Options) -> int | None:
    """The value that eKuiper's tools write into each rule, also beside `isEventTime: false`."""
    return 1000 if name == "late_tolerance_ms" and options.is_event_time is False else None


def _why_idle(name: str, options: Options, plan: Plan) -> str | None:
    if name in EVENT_TIME_ONLY and plan.timestamp is None:
        return "the rule runs in processing time; declare the stream's timestamp"
    if name in EMPTY_WINDOWS and (plan.mode != "sample" or plan.group_by):
        return "only a window in GROUP BY without other groups tells that it is empty"
    if name in OF_PATTERNS and not any(source.pattern for source in plan.sources):
        return "the rule has no pattern"
    if name == "max_recognize_attempts" and not any(source.recognize for source in plan.sources):
        return "the rule has no match_recognize"
    if name == "align" and not any(source.lot and source.lot.every_period for source in plan.sources):
        return "only a stream query with 'every' a period has update points"
    if name == "catch_up" and plan.timestamp is not None:
        return "in event time no window is overdue"
    if name == "catch_up" and plan.context is not None:
        return f"the timers in partitions are those of context '{plan.context.name}': set its catchUp"
    if name == "catch_up" and options.catch_up == "once" and plan.mode == "sample":
        return "each window in GROUP BY is a result of its own; 'skip' leaves them out"
    return None

"""The options of a rule: eKuiper's names for eKuiper's concepts, and our own options.

An eKuiper option that has no meaning here is accepted, so that rule files drop in, and gets a note with the
reason (`INERT`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, field_validator, model_validator

from rules.base import Model
from rules.durations import DurationMs, parse_duration
from rules.schedule import DatetimeRange, Schedule, parse_cron
from sql.calendar.zones import zone_of


def _known_zone(name: str) -> str:
    zone_of(name)
    return name


Zone = Annotated[str, AfterValidator(_known_zone)]
"""The name of a time zone, such as `Europe/Berlin`."""


class Options(Model):
    """Options of time, bounds and results of a rule."""

    is_event_time: bool | None = Field(
        None,
        description="use the stream's timestamp column as time; default: yes when the stream declares one",
    )
    late_tolerance_ms: DurationMs = Field(
        0,
        alias="lateTolerance",
        description="event time: how far the watermark stays behind the highest time stamp",
    )
    idle_timeout_ms: DurationMs | None = Field(
        None,
        alias="idleTimeout",
        description="event time: a stream silent for this long stops holding the watermark back",
    )
    max_future_ms: DurationMs | None = Field(
        None,
        alias="maxFuture",
        description="event time: time stamps further ahead of the clock are refused and counted",
    )
    zone: Zone | None = Field(
        None,
        description="time zone of window boundaries, calendar periods and crontabs; default: the gateway's",
    )
    emit_empty: bool = Field(
        False, description="emit a row for an empty window: count is 0, other aggregates are NULL"
    )
    catch_up: Literal["step", "once", "skip"] = Field(
        "step",
        description=(
            "timers overdue after a pause: each in turn; once for now, except windows in GROUP BY; none"
        ),
    )
    align: Literal["creation", "epoch", "firstEvent", "local"] = Field(
        "creation", description="where the update points of a stream query's 'every' count from"
    )
    max_groups: int = Field(
        1_000_000, ge=1, description="groups the rule may keep; a further one is an error event"
    )
    max_window_events: int = Field(
        10_000_000, ge=1, description="events the rule's windows may keep; a further one is an error event"
    )
    max_empty_windows: int = Field(
        10_000,
        ge=0,
        description="empty windows emitted in a row by one step of time; the rest is only counted",
    )
    max_pattern_partials: int = Field(
        100_000,
        ge=1,
        description=(
            "partial matches of a pattern that live at once, counted where an arrow begins one; "
            "searches that one 'every' has begun; matches that one event makes"
        ),
    )
    pattern_overflow: Literal["refuse", "dropOldest"] = Field(
        "refuse",
        description="at maxPatternPartials: one more is not begun, or the oldest ends; both are counted",
    )
    max_pattern_rows: int = Field(
        10_000,
        ge=1,
        description=(
            "matches an 'and' of a pattern remembers, events in the list of a repeat; the rest is counted"
        ),
    )
    max_pattern_keys: int = Field(
        100_000, ge=1, description="keys of an every-distinct; the oldest is forgotten and counted"
    )
    max_recognize_attempts: int = Field(
        100_000,
        ge=1,
        description=(
            "attempts of match_recognize, or ways to read their rows, that live at once; one more is counted"
        ),
    )
    send_nil_field: bool = Field(False, description="send NULL columns as null instead of leaving them out")
    send_error: bool = Field(
        False, description='send what goes wrong with an event to the actions, as {"error": text}'
    )
    send_meta_to_sink: bool = Field(
        False,
        description=(
            "add the metadata of the message (topic and so on) to the rows; not with windows or joins"
        ),
    )

    concurrency: int = Field(
        1, ge=0, description="no effect: the engine of a rule runs in one thread, in order"
    )
    buffer_length: int = Field(
        1024, ge=0, description="no effect: waiting messages are bounded for the whole gateway"
    )
    disable_buffer_full_discard: bool = Field(
        True, description="no effect: a full intake holds the source back"
    )
    qos: Literal[0, 1, 2] = Field(
        0, description="no effect: a message is acknowledged when its effect is durable"
    )
    checkpoint_interval: DurationMs = Field(
        300_000, description="no effect: each message is in the journal before it is acknowledged"
    )
    restart_strategy: dict[str, Any] | None = Field(
        None,
        description="no effect: one bad event never stops a rule, and sinks retry by themselves",
    )
    debug: bool = Field(False, description="no effect: the log level is the gateway's")
    log_filename: str = Field("", description="no effect: the gateway writes one log")
    enable_rule_tracer: bool = Field(
        False, description="no effect: 'penstock why' says of each rule why it fired"
    )
    plan_optimize_strategy: dict[str, Any] | None = Field(
        None,
        description="no effect: the planner chooses the strategy; results never depend on it",
    )
    enable_save_state_before_stop: bool = Field(
        True, description="no effect: state is always saved at a stop"
    )
    force_exit_timeout: DurationMs = Field(0, description="no effect: the gateway bounds its shutdown")
    notify_sub: bool = Field(
        False, description="no effect: rules that read its memory topic go on when it stops"
    )
    experiment: dict[str, Any] | None = Field(
        None, description="no effect: eKuiper's trials do not exist here"
    )

    cron: str = Field("", description="crontab of the times at which the rule starts, such as '0 6 * * 1-5'")
    duration_ms: DurationMs | Literal[""] = Field(
        "", alias="duration", description="how long it runs after each start"
    )
    cron_datetime_range: list[DatetimeRange] | None = Field(
        None, description="spans of time within which the rule runs, with or without `cron`"
    )

    @field_validator("cron")
    @classmethod
    def _crontab_is_one(cls, cron: str) -> str:
        if cron:
            parse_cron(cron, ZoneInfo("UTC"))
        return cron

    @model_validator(mode="after")
    def _schedule_is_whole(self) -> Self:
        if bool(self.cron) != bool(self.duration_ms):
            raise ValueError(
                "'cron' and 'duration' belong together: when the rule starts, and how long it runs"
            )
        return self

    def schedule(self, zone: ZoneInfo) -> Schedule | None:
        """The times at which the rule runs; None: always."""
        if not self.cron and not self.cron_datetime_range:
            return None
        ranges = tuple(item.bounds(zone) for item in self.cron_datetime_range or ())
        return Schedule(parse_cron(self.cron, zone) if self.cron else None, self.duration_ms or 0, ranges)


INERT: dict[str, tuple[Any, ...]] = {
    "concurrency": (0, 1),
    "bufferLength": (0, 1024),
    "disableBufferFullDiscard": (True, False),
    "qos": (0,),
    "checkpointInterval": (0, 300_000),
    "restartStrategy": ({},),
    "debug": (False,),
    "logFilename": ("",),
    "enableRuleTracer": (False,),
    "planOptimizeStrategy": ({},),
    "enableSaveStateBeforeStop": (True, False),
    "forceExitTimeout": (0,),
    "notifySub": (False,),
    "experiment": ({},),
}
"""Options without effect, with the values that eKuiper writes by default, which get no note."""


def _plain(key: str, value: object) -> object:
    """A value as INERT has it: durations in milliseconds; a strategy that is not switched on is none."""
    if key in ("checkpointInterval", "forceExitTimeout"):
        try:
            return parse_duration(value)
        except ValueError:
            return value
    if isinstance(value, dict):
        is_on = value.get("attempts") if key == "restartStrategy" else any(value.values())
        return value if is_on else {}
    return value


def without_effect(given: dict[str, Any]) -> list[tuple[str, str]]:
    """The options written in a rule that have no effect, each with the reason."""
    fields = {field.alias: field for field in Options.model_fields.values()}
    found = []
    for key, value in given.items():
        if key in INERT and value is not None and _plain(key, value) not in INERT[key]:
            reason = str(fields[key].description).removeprefix("no effect: ")
            found.append((key, reason))
    return found

"""The settings of a `cloud` action: the columns that identify a row, the merges of the others, the windows.

Everything but the windows follows from the query (`cloud_sync.binding`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, WithJsonSchema

from cloud_sync.fleet_windows import PATTERN, FleetWindow, parse_fleet_window
from cloud_sync.schemas import Check, Schema, SchemaFile, schema_file
from rules.base import Model
from rules.expect.expectation import Expect
from rules.options import Zone
from rules.secrets import Secret
from sinks.settings import CACHE, SinkSettings


class Average(Model):
    """An average, stored as sum and count: these merge exactly, the mean of means does not."""

    sum: str = Field(min_length=1, description="the column with the sum")
    count: str = Field(min_length=1, description="the column with the number of values")


class Spread(Model):
    """A standard deviation or variance beside the sum and the number of the same values,
    from which it merges."""

    kind: Literal["stddev", "stddev_pop", "var_samp", "var_pop"] = Field(description="what the column holds")
    sum: str = Field(min_length=1, description="the column with the sum")
    count: str = Field(min_length=1, description="the column with the number of values")


class Sketched(Model):
    """A distinct count or a percentile beside a sketch of the same values, from which it merges."""

    kind: Literal["distinct", "percentile"] = Field(description="what the column holds")
    sketch: str = Field(
        min_length=1, description="the column with theta_sketch() of the values, or with kll_sketch()"
    )
    part: float = Field(0.5, ge=0, le=1, description="which percentile, from 0 to 1")


class Timed(Model):
    """The first or the last value by time, beside the instant of its event."""

    kind: Literal["first", "last"] = Field(description="which value the column holds")
    at: str = Field(min_length=1, description="the column with the instant of the event, in milliseconds")


Merge = Literal["count", "sum", "min", "max", "theta", "kll", "top_k"]
How = Merge | Average | Spread | Sketched | Timed
Kind = Literal["int", "float", "text"]

HASH_KEY_CHARS_MIN = 16

_LENGTH_SCHEMA = {"anyOf": [{"type": "string", "pattern": PATTERN}, {"type": "integer", "minimum": 1}]}


def _levels(value: object) -> tuple[FleetWindow, ...]:
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed:
        raise ValueError("must name at least one window")
    return tuple(parse_fleet_window(item) for item in listed)


Levels = Annotated[
    tuple[FleetWindow, ...],
    BeforeValidator(_levels),
    WithJsonSchema(
        {"anyOf": [*_LENGTH_SCHEMA["anyOf"], {"type": "array", "minItems": 1, "items": _LENGTH_SCHEMA}]}
    ),
]
"""One window, or several from fine to coarse."""


class CloudSettings(SinkSettings):
    """Upload rows as partial aggregates, to be merged over all gateways into fleet windows."""

    encodes: ClassVar[bool] = False
    unsupported: ClassVar[frozenset[str]] = frozenset(
        {"sendSingle", "format", "schemaId", "delimiter", "hasHeader", "compression", "rowkindField",
         "sendNilField",
         "batchSize", "lingerInterval", "omitIfEmpty", *CACHE}
    )  # fmt: skip

    send_single: bool = Field(True, description="each row is a record of its own")
    window: Levels = Field(
        description="length of the fleet window, a multiple of the rule's window: "
        "a duration, or months of the calendar such as 1mo; a list names coarser levels too, "
        "from fine to coarse"
    )
    zone: Zone = Field("UTC", description="time zone of fleet windows of days, months and parts of a day")
    keys: list[str] | None = Field(
        None,
        description="the columns that identify a row, beside rule and window; "
        "default: those of the SELECT that hold no aggregate",
    )
    merge: dict[str, How] | None = Field(
        None,
        description="how the value columns merge: count, sum, min, max, {sum: column, count: column}, "
        "or the same with kind: stddev, stddev_pop, var_samp or var_pop; "
        "theta, kll and top_k for sketches, {kind: distinct, sketch: column} and "
        "{kind: percentile, sketch: column, part: 0.95} for what follows from them; "
        "{kind: last, at: column} or first for values by time; default: as the aggregates of the SELECT say",
    )
    types: dict[str, Kind] = Field(
        default_factory=dict,
        description="type of a value column in the fleet table, where the SELECT does not tell",
    )
    window_start: str = Field(
        "window_start",
        min_length=1,
        description="the column with window_start(); default: found in the SELECT",
    )
    window_end: str = Field(
        "window_end", min_length=1, description="the column with window_end(); default: found in the SELECT"
    )

    restates: bool = Field(
        False,
        description="a row states its window anew: of one gateway, window and keys the newest row counts, "
        "so a rule may send early and corrected results",
    )

    secret: list[str] = Field(
        default_factory=list, description="columns that never leave the gateway; neither keys nor merged"
    )
    hashed: list[str] = Field(
        default_factory=list,
        description="keys that leave as their HMAC-SHA256 under 'hashKey', 32 hexadecimal digits: "
        "equal values stay equal",
    )
    hash_key: Secret | None = Field(
        None, description="the key of 'hashed', 16 characters or more; the same on all gateways"
    )

    _rule_hash: str = PrivateAttr("")
    _schema: Schema | None = PrivateAttr(None)
    _checks: tuple[Expect, ...] = PrivateAttr(())

    @property
    def rule_hash(self) -> str:
        """The hash of the rule that made a row: 16 hexadecimal digits of its SQL; empty before `bind`."""
        return self._rule_hash

    @property
    def schema_file(self) -> SchemaFile | None:
        """The schema as it lies in the bucket; None before `bind`."""
        return None if self._schema is None else schema_file(self._schema)

    def described(self, schema: Schema) -> Self:
        """A copy of these settings whose rows have this schema."""
        copy = self.model_copy()
        copy._schema = schema
        return copy

    def expecting(self, checks: Sequence[Expect]) -> Self:
        """A copy of these settings whose rows say which of these checks they break."""
        if self._schema is None or not checks:
            return self
        copy = self.described(self._schema._replace(expect=tuple(map(_contract_of, checks))))
        copy._checks = tuple(checks)
        return copy

    @property
    def checks(self) -> tuple[tuple[int, Expect], ...]:
        """The checks of columns that the action sends,
        each with its position among all checks of the rule."""
        return tuple((at, check) for at, check in enumerate(self._checks) if self._sends(check.column))

    @property
    def replaces_columns(self) -> bool:
        """True if a template or a field replaces the columns of the SELECT."""
        return self.data_template is not None or self.data_field is not None

    def _sends(self, column: str | None) -> bool:
        is_chosen = self.fields is None or column in self.fields
        return (
            column is not None
            and is_chosen
            and not self.replaces_columns
            and column not in self.exclude_fields
        )

    def of_rule(self, sql: str) -> Self:
        """A copy of these settings for a rule with this text."""
        copy = self.model_copy()
        copy._rule_hash = rule_hash(sql)
        return copy

    def faults(self) -> Iterator[str]:
        """Keys and merges fit together."""
        yield from super().faults()
        keys, merge = self.keys or [], self.merge or {}
        if both := set(keys) & set(merge):
            yield f"'merge' names columns that 'keys' has too: {', '.join(sorted(both))}"
        if len(set(keys)) < len(keys):
            yield "'keys' names a column twice"
        if self.merge is not None and (unknown := set(self.types) - set(merge)):
            yield f"'types' names columns that 'merge' does not: {', '.join(sorted(unknown))}"
        if wrong := [
            name for name, kind in self.types.items() if kind == "float" and merge.get(name) == "count"
        ]:
            yield f"'types' of {', '.join(wrong)}: counts are whole numbers; remove it, or merge by sum"
        texts = [name for name, kind in self.types.items() if kind == "text" and name in merge]
        if wrong := [name for name in texts if not isinstance(merge[name], Timed)]:
            yield f"'merge' of {', '.join(wrong)}: text does not merge but as first or last"
        yield from self._faults_of_hidden()
        for name, how in merge.items():
            wanted = "theta" if isinstance(how, Sketched) and how.kind == "distinct" else "kll"
            if isinstance(how, Sketched) and merge.get(how.sketch) != wanted:
                yield f"'merge' of {name} needs {how.sketch}: {wanted} beside it"
        for finer, coarser in zip(self.window, self.window[1:], strict=False):
            if not coarser.is_coarser_than(finer, self.zone):
                yield f"'window': {coarser.label} is not made of whole windows of {finer.label}"

    def _faults_of_hidden(self) -> Iterator[str]:
        """Secret columns are not sent, and hashes have a key that cannot be guessed."""
        if sent := set(self.secret) & {*(self.keys or ()), *(self.merge or {}), *self.hashed}:
            yield f"'secret' names columns that are sent: {', '.join(sorted(sent))}"
        if self.keys is not None and (unknown := set(self.hashed) - set(self.keys)):
            yield f"'hashed' names columns that are no keys: {', '.join(sorted(unknown))}"
        if self.hashed and (self.hash_key is None or len(self.hash_key.reveal()) < HASH_KEY_CHARS_MIN):
            yield (
                f"'hashed' needs a 'hashKey' of at least {HASH_KEY_CHARS_MIN} characters, such as "
                "${file:hash-key}: plain hashes of short names can be guessed"
            )

    def type_of(self, column: str) -> Kind:
        """The declared type of a value column; counts are always whole."""
        return "int" if (self.merge or {}).get(column) == "count" else self.types.get(column, "float")


def _contract_of(check: Expect) -> Check:
    """A check as the schema has it."""
    least, most = check.range or (None, None)
    return Check(check.column, check.then, least, most, check.not_null, check.freshness)


def rule_hash(sql: str) -> str:
    """The hash of a rule's SQL; equal for texts that differ in white space alone.

    >>> rule_hash("SELECT 1") == rule_hash("SELECT\\n  1"), len(rule_hash(""))
    (True, 16)
    """
    return hashlib.sha256(" ".join(sql.split()).encode()).hexdigest()[:16]

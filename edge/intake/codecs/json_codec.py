"""JSON payloads, decoded once, and only the columns that some rule reads.

msgspec does the work; the policy:

    object                            one row
    array of objects                  one row each; a single element that is no object refuses the payload
    scalar, NaN, Infinity, 1e400      refused
    integer                           exact, at any size up to 4,300 digits
    duplicate key                     the last one wins
    lone surrogate, invalid UTF-8     refused
    byte order mark, trailing text    refused
    nested deeper than `depth_max`    refused
    value of another declared type    refused, where declared types hold
    whole number, `1.0`               stay int and float as written

Of a column that no rule reads only the syntax is checked: a number out of range there does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, repeat
from operator import methodcaller
from typing import Any, NamedTuple

import msgspec

from edge.intake.codecs.base import Bad, BadPayload, CodecOptions, Row, too_long
from edge.intake.codecs.rows import META, attributes, row_class
from edge.intake.codecs.typed import row_parser
from sql.catalog.validation import Validator
from sql.errors import DataError

LONG_BYTES = 10_000
"""A longer payload is checked by itself: counting its brackets would take as long as decoding it."""

_STEPS = bytes(
    {ord("["): 1, ord("{"): 1, ord("]"): 255, ord("}"): 255}.get(byte, byte) for byte in range(256)
)
"""One level down or up, as a signed byte, for each bracket."""

_NEITHER = bytes(byte for byte in range(256) if byte not in b'[]{}"')
"""The bytes that are neither a bracket nor a quotation mark."""

_count_square, _count_curly = methodcaller("count", b"["), methodcaller("count", b"{")


class JsonParser(NamedTuple):
    """One way to parse: a payload that is an object, one that is an array of objects,
    and what both may raise. `again`: parses an object that `row` refused, with a better reason."""

    row: Callable[[bytes], Row]
    rows: Callable[[bytes], list[Row]]
    errors: tuple[type[Exception], ...]
    skips_columns: bool
    again: Callable[[bytes], Row] | None = None


class JsonDecoder:
    """Decodes the JSON payloads of one stream; see the module for what is accepted.

    columns   those that rules read: rows are of `row_class(columns)`; None: whole messages, rows are dicts
    """

    def __init__(
        self,
        columns: frozenset[str] | None = None,
        options: CodecOptions | None = None,
        parser: Callable[[frozenset[str] | None], JsonParser] | None = None,
    ) -> None:
        self.options = options or CodecOptions()
        self._parser = (parser or msgspec_parser)(columns)
        if self.options.validator is not None:
            self._parser = checked(self._parser, columns, self.options.validator)
        self._errors: tuple[type[Exception], ...] = (*self._parser.errors, BadPayload)
        self._whole = columns is None
        self._meta = attributes(columns or ()).get(META)

    def decode_many(
        self, payloads: Sequence[bytes], metas: Sequence[Mapping[str, Any]] | None = None
    ) -> tuple[list[Row], list[Bad]]:
        """Rows of the good payloads in order, and (index, reason) of the bad ones.

        A run of good payloads is decoded by one call into the parser; a payload that
        breaks a run is decoded by itself.
        """
        rows: list[Row] = []
        bad: list[Bad] = []
        parse = self._parser.row if self._all_harmless(payloads) else self._checked_row
        waiting = iter(payloads)
        done = 0
        while done < len(payloads):
            first = len(rows)
            error: Exception | None = None
            try:
                rows.extend(map(parse, waiting))
            except self._errors as caught:  # the rows before it stay in `rows`
                error = caught
            taken = len(rows) - first
            if self._whole or self._meta is not None:
                self._attach(rows[first:], metas[done : done + taken] if metas else None)
            done += taken
            if error is not None:
                try:
                    several = self._array(payloads[done], error)
                    self._attach(several, [metas[done]] * len(several) if metas else None)
                    rows += several
                except BadPayload as reason:
                    bad.append((done, str(reason)))
                done += 1
        return rows, bad

    def _all_harmless(self, payloads: Sequence[bytes]) -> bool:
        """True if the parser alone may judge the batch: lengths and depths are in bounds,
        and so is unread text."""
        longest = max(map(len, payloads), default=0)
        if longest > min(self.options.bytes_max, LONG_BYTES):
            return False
        # Each level takes two brackets: where there is no room for too many, there is no need to count them.
        if longest > 2 * self.options.depth_max:
            brackets = max(map(_count_square, payloads)) + max(map(_count_curly, payloads))
            if brackets > self.options.depth_max:
                return False
        if not self._parser.skips_columns:
            return True
        # A line feed is never part of a character, so the joined text is valid
        # if and only if each payload is.
        try:
            str(b"\n".join(payloads), "utf-8")
        except UnicodeDecodeError:
            return False
        return True

    def _checked_row(self, payload: bytes) -> Row:
        self._check(payload)
        return self._parser.row(payload)

    def _check(self, payload: bytes) -> None:
        if len(payload) > self.options.bytes_max:
            raise BadPayload(too_long(payload, self.options.bytes_max))
        if depth_exceeds(payload, self.options.depth_max):
            raise BadPayload(f"nested deeper than the {self.options.depth_max} levels allowed")
        if self._parser.skips_columns:
            str(payload, "utf-8")

    def _array(self, payload: bytes, error: Exception) -> list[Row]:
        """The rows of an array of objects; what was wrong with the payload as an object
        decides when it is none."""
        if not payload.strip():
            raise BadPayload("the payload is empty") from error
        is_array = payload.lstrip()[:1] == b"["
        again = self._parser.again
        if isinstance(error, BadPayload | DataError) or not (is_array or again):
            raise BadPayload(reason(error)) from error
        try:
            return self._parser.rows(payload) if is_array or again is None else [again(payload)]
        except self._parser.errors as caught:
            raise BadPayload(reason(caught)) from caught

    def _attach(self, rows: list[Row], metas: Sequence[Mapping[str, Any]] | None) -> None:
        """Give rows their `$meta`, and take away one that a payload tried to provide."""
        if self._whole:
            for row in rows:
                if META in row:
                    del row[META]
            for row, meta in zip(rows, metas or (), strict=False):
                row[META] = meta
        elif self._meta is not None:
            for row, value in zip(rows, metas or repeat(None), strict=False):
                setattr(row, self._meta, value)


def reason(error: Exception) -> str:
    """Why a payload was refused, in one clause that does not repeat the payload."""
    if isinstance(error, BadPayload | DataError):
        return str(error)
    if isinstance(error, RecursionError):
        return "nested too deep"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: {error.reason} at byte {error.start}"
    text = str(error)[:200]
    return text if text.startswith("JSON ") else f"JSON cannot be used: {text}"[:200]


def checked(parser: JsonParser, columns: frozenset[str] | None, validator: Validator) -> JsonParser:
    """A parser whose rows fit their declared types."""
    check, plain = validator.check, parser

    def again(payload: bytes) -> Row:
        return check(plain.row(payload))

    return JsonParser(
        again if columns is None else row_parser(columns, validator),
        lambda payload: [check(row) for row in plain.rows(payload)],
        (*plain.errors, DataError),
        plain.skips_columns,
        None if columns is None else again,
    )


def depth_exceeds(payload: bytes, depth_max: int) -> bool:
    """True if arrays and objects are nested deeper than `depth_max`.

    >>> depth_exceeds(b'[[["[[[["]]]', 3), depth_exceeds(b'[[[[]]]]', 3)
    (False, True)
    """
    if not any(_are_more(payload, bracket, depth_max // 2) for bracket in (b"[", b"{")):
        return False
    if b"\\" in payload:
        payload = payload.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside_strings = payload.translate(_STEPS, _NEITHER).split(b'"')[::2]
    steps = memoryview(b"".join(outside_strings)).cast("b")
    return max(accumulate(steps), default=0) > depth_max


def _are_more(payload: bytes, byte: bytes, count: int) -> bool:
    """True if a byte occurs more than `count` times. Finding a few is quicker than counting all."""
    at = -1
    for _ in range(count + 1):
        at = payload.find(byte, at + 1)
        if at < 0:
            return False
    return True


def msgspec_parser(columns: frozenset[str] | None) -> JsonParser:
    """The fast parser: with columns it fills a row object directly and skips everything else."""
    row_type: Any = dict[str, Any] if columns is None else row_class(columns)
    one: Callable[[bytes], Row] = msgspec.json.Decoder(row_type).decode
    many: Callable[[bytes], list[Row]] = msgspec.json.Decoder(list[row_type]).decode
    return JsonParser(
        one, many, (msgspec.MsgspecError, UnicodeDecodeError, RecursionError), columns is not None
    )

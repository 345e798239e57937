"""The schema that a manifest names: its file, and the records that have to fit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cloud_sync.schemas import BadSchema, Check, Schema, read_schema, schema_id
from cloud_sync.spark.contract.fields import Bad
from cloud_sync.spark.contract.values import UploadedValue

EXPECTATIONS_MAX = 1_000


def declared(rule: str, rule_hash: str, wanted: str, content: bytes | None) -> Schema:
    """The schema with the id `wanted` of a rule. Raises Bad."""
    if content is None:
        raise Bad(f"its schema {rule_hash}-{wanted} is not there (yet)")
    if schema_id(content) != wanted:
        raise Bad(f"the file of its schema {rule_hash}-{wanted} holds another one")
    try:
        schema = read_schema(content)
    except BadSchema as error:
        raise Bad(f"its schema {rule_hash}-{wanted}: {error}") from None
    if (schema.rule, schema.rule_hash) != (rule, rule_hash):
        raise Bad(f"its schema {rule_hash}-{wanted} is of another rule, or another version of it")
    return schema


def check_fit(fields: Mapping[str, Any], values: Sequence[UploadedValue], schema: Schema) -> None:
    """Raises Bad if a record has other keys than its schema, or a value that the schema does not have."""
    if {*fields["keys"]} != {key.name for key in schema.keys}:
        raise Bad("its keys are not those of its schema")
    known = {(column.name, column.merge, column.type) for column in schema.values}
    for value in values:
        if value[:3] not in known:
            raise Bad(f"column '{value.name}' is not in its schema as {value.merge} of {value.type}")


def broken_checks(fields: Mapping[str, Any], schema: Schema | None) -> tuple[Check, ...]:
    """The checks of the schema that a record breaks, by its own account. Raises Bad."""
    listed = fields.get("broken", [])
    if not listed or schema is None:
        return ()
    if not isinstance(listed, list) or len(listed) > EXPECTATIONS_MAX:
        raise Bad("'broken' is no list of positions")
    if any(
        isinstance(at, bool) or not isinstance(at, int) or not 0 <= at < len(schema.expect) for at in listed
    ):
        raise Bad("'broken' names a check that its schema does not have")
    return tuple(schema.expect[at] for at in listed)


def check_in_words(check: Check) -> str:
    """A check in words.

    >>> check_in_words(Check("t", "warn", -40.0, 120.0)), check_in_words(Check("dev", "fail", not_null=True))
    ('t from -40.0 to 120.0', 'dev not NULL')
    >>> check_in_words(Check("t", "warn", min=0.0, not_null=True))
    't at least 0.0 and not NULL'
    >>> check_in_words(Check(None, "warn", freshness_ms=9))
    'no window older than 9 ms'
    """
    if check.column is None:
        return f"no window older than {check.freshness_ms} ms"
    if check.min is not None and check.max is not None:
        bounds = [f"from {check.min} to {check.max}"]
    else:
        bounds = [
            f"at {name} {bound}"
            for name, bound in (("least", check.min), ("most", check.max))
            if bound is not None
        ]
    return f"{check.column} " + " and ".join([*bounds, *(["not NULL"] if check.not_null else [])])

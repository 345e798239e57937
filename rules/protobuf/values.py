"""Messages and rows: each field is a column.

A field without presence has its default if the message lacks it; others are NULL. Enums are numbers, maps are
objects with text keys. In the other direction NULL leaves a field out, an enum may be given by name, and a
column that the message has no field for is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sql.errors import DataError, did_you_mean
from sql.types import Value

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.message import Message


DEPTH_MAX = 100
"""Messages within messages; the library itself reads no deeper ones."""


def columns_of(message: Message) -> dict[str, Any]:
    """The fields of a message."""
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: Message, field: FieldDescriptor) -> Any:
    is_message = field.message_type is not None
    if is_message and field.message_type.GetOptions().map_entry:
        of_messages = field.message_type.fields_by_name["value"].message_type is not None
        entries = _content(message, field).items()
        return {_key(key): columns_of(item) if of_messages else item for key, item in entries}
    if field.is_repeated:
        values = _content(message, field)
        return [columns_of(item) for item in values] if is_message else list(values)
    if field.has_presence and not message.HasField(field.name):
        return None
    found = _content(message, field)
    return columns_of(found) if is_message else found


def _content(message: Message, field: FieldDescriptor) -> Any:
    """The value of a field of a message."""
    return getattr(message, field.name)


def _key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def message_of(kind: Any, row: Mapping[str, Any]) -> bytes:
    """A row as an encoded message of a class. Raises DataError if it does not fit."""
    message = kind()
    _fill(message, row, 0)
    try:
        encoded: bytes = message.SerializeToString(deterministic=True)
    # A required field is missing; the library's error has no public class.
    except Exception as error:  # noqa: BLE001
        raise DataError(f"{kind.DESCRIPTOR.full_name}: {error}") from None
    return encoded


def _fill(message: Message, row: Mapping[str, Any], depth: int) -> None:
    name_of_message = message.DESCRIPTOR.full_name
    if depth > DEPTH_MAX:
        raise DataError(f"{name_of_message}: more than {DEPTH_MAX} messages within each other")
    fields = message.DESCRIPTOR.fields_by_name
    for name, value in row.items():
        field = fields.get(name)
        if field is None:
            hint = did_you_mean(name, fields) or "leave it out with 'excludeFields'"
            raise DataError(f"{name_of_message} has no field '{name}': {hint}")
        if value is None:
            continue
        try:
            _set(message, field, value, depth)
        except (TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{field.full_name} cannot be {_short(value)}: {error}") from None


def _set(message: Message, field: FieldDescriptor, value: Value, depth: int) -> None:
    target = _content(message, field)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value_field = field.message_type.fields_by_name["value"]
        for key, item in value.items():
            typed = _typed_key(field.message_type.fields_by_name["key"], key)
            if value_field.message_type is not None:
                _fill(target[typed], item, depth + 1)
            else:
                target[typed] = _scalar(value_field, item)
    elif field.is_repeated:
        for item in value:
            if field.message_type is not None:
                _fill(target.add(), item, depth + 1)
            else:
                target.append(_scalar(field, item))
    elif field.message_type is not None:
        target.SetInParent()
        _fill(target, value, depth + 1)
    else:
        setattr(message, field.name, _scalar(field, value))


def _scalar(field: FieldDescriptor, value: object) -> Any:
    """A value as the library takes it: whole floats for integers, names for enums, text for bytes."""
    if field.enum_type is not None and isinstance(value, str):
        if value not in field.enum_type.values_by_name:
            raise ValueError(f"{field.enum_type.full_name} has no value of that name")
        return field.enum_type.values_by_name[value].number
    if field.cpp_type <= field.CPPTYPE_UINT64 and isinstance(value, float) and value.is_integer():
        return int(value)
    if field.type == field.TYPE_BYTES and isinstance(value, str):
        return value.encode()
    if field.cpp_type == field.CPPTYPE_BOOL and not isinstance(value, bool):
        raise ValueError("it is a boolean")
    if isinstance(value, bool) and field.cpp_type != field.CPPTYPE_BOOL:
        raise ValueError("it is no boolean")
    return value


def _typed_key(field: FieldDescriptor, key: str) -> Any:
    if field.cpp_type == field.CPPTYPE_STRING:
        return key
    return key == "true" if field.cpp_type == field.CPPTYPE_BOOL else int(key)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

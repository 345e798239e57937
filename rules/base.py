"""The base of all models of a rule file: strict, closed, camelCase in YAML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, InitErrorDetails


class Model(BaseModel):
    """A model that refuses unknown keys, never converts values, and never repeats one in a message."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        alias_generator=to_camel,
        hide_input_in_errors=True,
        json_schema_serialization_defaults_required=False,
        defer_build=True,  # validators are built when first used: most models of sinks never are
    )

    without_effect: ClassVar[Mapping[str, str]] = {}
    """Keys of eKuiper that are accepted and have no effect, each with the reason, which a note reports."""

    @classmethod
    def counts_as_absent(cls, key: object, value: object) -> bool:
        """True if a value of a key says that it is not set, so that no note reports it."""
        return False

    def faults(self) -> Iterator[str]:
        """Why the values do not fit together, a sentence each. It is about the key that it begins with, if
        that is quoted."""
        yield from ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if faults := list(self.faults()):
            raise refused(faults)
        return self


def refused(reasons: Iterable[str], others: ValidationError | None = None) -> ValidationError:
    """The error that reports these reasons about a whole model, and other errors with them."""
    lines = [
        InitErrorDetails(type=error["type"], loc=error["loc"], input=error["input"], ctx=error.get("ctx", {}))
        for error in (others.errors(include_url=False) if others else ())
    ]
    lines += [
        InitErrorDetails(type="value_error", input=None, ctx={"error": ValueError(reason)})
        for reason in reasons
    ]
    return ValidationError.from_exception_data("settings", lines)


def reasons_of(error: ValidationError) -> str:
    """The reasons of an error on one line, each behind its key."""
    return "; ".join(
        f"{'.'.join(map(str, item['loc']))}: {_reason(item)}" for item in error.errors(include_url=False)
    )


def _reason(item: ErrorDetails) -> str:
    is_unknown = item["type"] == "extra_forbidden"
    return "is not known" if is_unknown else item["msg"].removeprefix("Value error, ")


def yaml_keys(model: type[BaseModel]) -> dict[str, Any]:
    """The YAML keys of a model and the field each belongs to."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def is_among(value: object, values: tuple[object, ...]) -> bool:
    """True if a value is one of these; 0 and false are different values."""
    return any(value.__class__ is each.__class__ and value == each for each in values)

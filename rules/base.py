"""The base of all models of a rule file: strict, closed, camelCase in YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


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


def yaml_keys(model: type[BaseModel]) -> dict[str, Any]:
    """The YAML keys of a model and the field each belongs to."""
    return {field.alias or name: field for name, field in model.model_fields.items()}

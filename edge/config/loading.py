"""From file, environment and flags to a `Config`, with every problem at its place."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel

from edge.base.environment import Given, settings, spelled
from edge.config.sections import SECRETS_DIR, Config, ConfigError
from rules.problems import render_all
from rules.secrets import Secret, Secrets, references_in
from rules.source.document import Document
from rules.source.document import Path as Keys
from sql.errors import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def load(
    path: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Config:
    """The configuration from file, environment and flags (`{"mqtt.server": …}`, None: not given).

    Raises ConfigError with every problem of the file, each with its place.
    """
    environment = os.environ if environment is None else environment
    document = _read(path) if path else None
    values: dict[str, Any] = copy.deepcopy(document.data) if document else {}
    for given in settings(environment):
        _put(values, _in_yaml(given), given.text)
    for dotted, value in (flags or {}).items():
        if value is not None:
            _put(values, dotted.split("."), value)
    try:
        found = Config.model_validate(_resolved(values, environment))
    except ValidationError as error:
        raise ConfigError("\n".join(_sentence(item, document) for item in error.errors())) from None
    found._reserved = frozenset(references_in(values))
    found._document = document
    return found


def sentence(config: Config, keys: Keys, message: str) -> str:
    """The message about a value of a configuration, with its place in the file, if it stands in one."""
    return _placed(config._document, keys, message)


def _read(path: Path) -> Document | None:
    """A YAML mapping with positions; None for an empty file. Raises ConfigError."""
    from rules.source.yaml_source import read_file  # most gateways are configured by flags and variables

    document, problems = read_file(path, str(path))
    if problems and any(problem.code != "R008" for problem in problems):
        raise ConfigError(render_all(problems))
    if document is None or document.data is None:
        return None
    if not isinstance(document.data, dict):
        raise ConfigError(
            f"{path}:1:1: expected sections such as 'mqtt:', got a {type(document.data).__name__}"
        )
    return document


def _sentence(item: ErrorDetails, document: Document | None) -> str:
    """pydantic's message with the place of the key, without the value: it may be a secret."""
    keys = tuple(item["loc"])
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        known = _keys_at(keys[:-1]).values()
        hint = did_you_mean(str(keys[-1]), known) or f"expected one of {', '.join(sorted(known))}"
        message = f"unknown key; {hint}" if known else "unknown key"
    elif item["type"] == "model_type":
        message = "expected keys below it"
    return _placed(document, keys, message)


def _placed(document: Document | None, keys: Keys, message: str) -> str:
    """The message about the value at `keys`, with its place in the file, if it stands in one."""
    text = f"{'.'.join(map(str, keys)) or 'configuration'}: {message}"
    while document is not None and keys and keys not in document.places:
        keys = keys[:-1]
    if document is None or not keys:
        return text
    line, column = document.text.position(document.key_span(keys).start)
    return f"{document.text.path}:{line}:{column}: {text}"


def _in_yaml(given: Given) -> list[str]:
    """The YAML keys meant by the words of an environment variable."""
    keys: list[str] = []
    for word in given.words:
        known = _keys_at(keys)
        if not known:
            key = ".".join(keys)
            raise ConfigError(
                f"environment variable {given.variable}: what is below {key} stands in the file"
            )
        if spelled(word) not in known:
            choices = ", ".join(sorted(key.upper() for key in known))
            raise ConfigError(
                f"environment variable {given.variable}: unknown key '{word}'; expected one of {choices}"
            )
        keys.append(known[spelled(word)])
    return keys


def _keys_at(keys: Sequence[int | str]) -> dict[str, str]:
    """The keys below some, by what they are compared by; empty where there is no section."""
    model: type[BaseModel] = Config
    for key in keys:
        fields = {to_camel(name): field.annotation for name, field in model.model_fields.items()}
        annotation = fields.get(str(key))
        if not isinstance(annotation, type) or not issubclass(annotation, BaseModel):
            return {}
        model = annotation
    return {spelled(name): to_camel(name) for name in model.model_fields}


def _put(values: dict[str, Any], keys: list[str], value: object) -> None:
    """Set a nested key, making sections on the way."""
    for key in keys[:-1]:
        section = values.setdefault(key, {})
        if not isinstance(section, dict):
            raise ConfigError(f"'{key}' must be a section, got a {type(section).__name__}")
        values = section
    values[keys[-1]] = value


def _resolved(values: dict[str, Any], environment: Mapping[str, str]) -> Any:
    """`values` with `${env:NAME}` and `${file:name}` replaced by what they name; the
    models hide secrets again."""
    section = values.get("secrets")
    directory = section.get("dir") if isinstance(section, dict) else None
    # The author of the configuration owns the process, so unlike a rule file it may use any variable.
    secrets = Secrets(
        env_prefixes=("",), directory=Path(directory or SECRETS_DIR), env=environment, is_of_rules=False
    )
    resolved, failures = secrets.resolve_all(values)
    if failures:
        raise ConfigError("\n".join(f"{'.'.join(map(str, keys))}: {reason}" for keys, reason in failures))
    return _revealed(resolved)


def _revealed(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _revealed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_revealed(item) for item in value]
    return value.reveal() if isinstance(value, Secret) else value

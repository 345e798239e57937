"""Secrets: `${env:NAME}` and `${file:path}` in the text of actions.

`${env:NAME:-text}` means `text` if the variable is not set.

A resolved text is a `Secret`: it prints as stars everywhere (str, repr, format, model dumps, errors); only
`reveal()` returns its characters. `$${` stands for a plain `${`. Nothing is ever resolved inside SQL.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import core_schema

from rules.problems import in_words

STARS = "***"
CONFIGURATION = "PENSTOCK__"
"""The prefix of variables that configure the gateway: no rule file may read them."""

_REFERENCE = re.compile(r"\$?\$\{([^{}]*)\}")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Secret:
    """A text that prints as stars. Equal to another of the same characters; not equal to a `str`."""

    __slots__ = ("_characters",)

    def __init__(self, characters: str) -> None:
        self._characters = characters

    def reveal(self) -> str:
        """The characters. Use them at once; never log or store them."""
        return self._characters

    def __repr__(self) -> str:
        return STARS

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return STARS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._characters == other._characters

    def __hash__(self) -> int:
        return hash(("secret", self._characters))

    def __reduce__(self) -> Any:
        raise TypeError("a secret cannot be stored")

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret:
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> core_schema.CoreSchema:
        """The schema as a field type: accepts a secret, or a text and hides it; dumps as stars."""
        return core_schema.no_info_before_validator_function(
            lambda value: cls(value) if isinstance(value, str) else value,
            core_schema.is_instance_schema(cls),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: object, handler: object) -> dict[str, Any]:
        return {"type": "string"}


def reveal(text: object) -> str:
    """The characters of a setting that may be a secret. Use the result at once and never log it."""
    return text.reveal() if isinstance(text, Secret) else str(text)


class Unresolved(ValueError):
    """A reference cannot be resolved. Its text names the reference and the remedy, never a value."""


class Absent(Unresolved):
    """The reference is valid, but this machine lacks the variable or file."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """The sources of secrets.

    env_prefixes  only variables that begin with one of these may be used; "" allows all.
    allow         `env:NAME` and `file:name`: only these may be used; None: by prefix, and every file.
    reserved      those that the gateway itself is configured with;
                  only `allow` gives them to rule files as well.
    is_of_rules   variables that configure the gateway are refused.
    directory     `${file:path}` is relative to it and may not leave it; None: no files.
    file_bytes_max  a larger file is refused.
    may_be_absent   nothing is opened here, so a secret that is only on the gateway is worth a
                    note, not an error.
    """

    env_prefixes: tuple[str, ...] = ("PENSTOCK_",)
    directory: Path | None = None
    allow: frozenset[str] | None = None
    reserved: frozenset[str] = frozenset()
    is_of_rules: bool = True
    env: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    file_bytes_max: int = 65_536
    may_be_absent: bool = False

    def resolve(self, text: str) -> str | Secret:
        """The text itself if it has no reference, else a `Secret` with all references replaced; raises
        `Unresolved`."""
        found = False

        def replace(match: re.Match[str]) -> str:
            nonlocal found
            if match[0].startswith("$$"):
                return match[0][1:]
            found = True
            return self._value(match[1])

        resolved = _REFERENCE.sub(replace, text)
        return Secret(resolved) if found else resolved

    def _value(self, reference: str) -> str:
        kind, colon, name = reference.partition(":")
        if colon and kind == "env":
            return self._variable(name)
        if colon and kind == "file":
            return self._file(name)
        raise Unresolved(
            f"'${{{reference}}}' is neither ${{env:NAME}} nor ${{file:path}}; write $${{ for a plain ${{"
        )

    def _variable(self, reference: str) -> str:
        name, with_default, default = reference.partition(":-")
        if not _ENV_NAME.fullmatch(name):
            raise Unresolved(f"'${{env:{name}}}' is not the name of an environment variable")
        if self.is_of_rules and name.upper().startswith(CONFIGURATION):
            raise Unresolved(
                f"the variable '{name}' configures the gateway; give the rules one of another name"
            )
        self._check_allowed(f"env:{name}")
        if self.allow is None and not name.startswith(self.env_prefixes):
            allowed = ", ".join(f"{prefix}…" for prefix in self.env_prefixes) or "none"
            raise Unresolved(f"the variable '{name}' may not be used in rule files; allowed are {allowed}")
        if name in self.env:
            return self.env[name]
        if not with_default:
            raise Absent(f"the environment variable '{name}' is not set")
        return default

    def _check_allowed(self, key: str) -> None:
        if self.allow is not None and key not in self.allow:
            raise Unresolved(f"'${{{key}}}' is not listed in secrets.allow of the gateway's configuration")
        if self.allow is None and key in self.reserved:
            why = (
                "is a secret of the gateway's own configuration; list it in secrets.allow if rules may use it"
            )
            raise Unresolved(f"'${{{key}}}' {why}")

    def _file(self, name: str) -> str:
        relative = Path(name)
        if not name or relative.is_absolute() or ".." in relative.parts or "\0" in name:
            raise Unresolved(f"'${{file:{name}}}' must be a path below the secrets directory, without '..'")
        self._check_allowed(f"file:{relative.as_posix()}")
        if self.directory is None:
            raise Absent(f"'${{file:{name}}}' cannot be read: no secrets directory is configured")
        base = self.directory.resolve()
        try:
            path = (base / relative).resolve()
            if not path.is_relative_to(base):
                raise Unresolved(f"'${{file:{name}}}' leaves the secrets directory through a link")
            if not path.is_file():
                raise Absent(f"the secrets directory has no file '{name}'")
            if path.stat().st_size > self.file_bytes_max:
                raise Unresolved(f"the secret file '{name}' is larger than {self.file_bytes_max} bytes")
            return path.read_text("utf-8").rstrip("\r\n")
        except OSError as error:
            reason = in_words(error, with_file=False)
            raise Unresolved(f"the secret file '{name}' cannot be read: {reason}") from None
        except UnicodeDecodeError:
            raise Unresolved(f"the secret file '{name}' is not UTF-8; save it as UTF-8") from None

    def resolve_all(
        self, value: object, path: tuple[Any, ...] = ()
    ) -> tuple[Any, list[tuple[tuple[Any, ...], Unresolved]]]:
        """A copy of plain data with every text resolved, and (path, reason) for each that cannot be."""
        failures: list[tuple[tuple[Any, ...], Unresolved]] = []

        def walk(item: object, at: tuple[Any, ...]) -> Any:
            if isinstance(item, dict):
                return {key: walk(inner, (*at, key)) for key, inner in item.items()}
            if isinstance(item, list):
                return [walk(inner, (*at, index)) for index, inner in enumerate(item)]
            if not isinstance(item, str):
                return item
            try:
                return self.resolve(item)
            except Unresolved as error:
                failures.append((at, error))
                return item

        return walk(value, path), failures


def references_in(value: object) -> Iterator[str]:
    """The references in plain data, as `env:NAME` and `file:name`."""
    if isinstance(value, str):
        for match in _REFERENCE.finditer(value):
            if not match[0].startswith("$$"):
                yield match[1].partition(":-")[0]
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from references_in(inner)


def secrets_in(value: object) -> Iterator[str]:
    """The characters of all secrets inside plain data, for removing them from messages."""
    if isinstance(value, Secret):
        yield value.reveal()
    elif isinstance(value, dict):
        for inner in value.values():
            yield from secrets_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from secrets_in(inner)


def redact(message: str, values: Iterator[str] | list[str]) -> str:
    """The message with every secret's characters replaced by stars."""
    for characters in sorted({value for value in values if value}, key=len, reverse=True):
        message = message.replace(characters, STARS)
    return message

"""Translate pydantic's errors to sentences with a position in the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rules.base import yaml_keys
from rules.problems import Report, is_secret_name
from rules.secrets import STARS, Secret, redact, secrets_in
from rules.source.document import Document, Path
from sql.errors import Span, did_you_mean

CLAUSES = ("filter", "where", "having")
"""Keys that people try in rules and streams for clauses of the query."""

M = TypeVar("M", bound=BaseModel)

_WANTED = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping",
    "model": "a mapping",
    "set": "a list",
    "is_instance_of": "text",
    "mapping": "a mapping",
    "none_required": "null",
    "dataclass": "a mapping",
}
PATTERNS = {r"^[\w.:-]+$": "must consist of letters, digits and '_', '.', ':', '-'"}
"""The patterns of models in words."""

_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}


def validate(
    model: type[M],
    data: object,
    document: Document,
    path: Path,
    report: Report,
    synonyms: Mapping[str, str | None] | None = None,
) -> M | None:
    """The data at `path` as a model; None if it does not fit, with every reason reported at its place.

    `synonyms` names the right key for wrong ones that people try.
    """
    if not isinstance(data, dict):
        report.error(
            "R103", f"{_name(path)} must be a mapping, not {describe(data)}", document.value_span(path)
        )
        return None
    try:
        return model.model_validate(data)
    except ValidationError as error:
        translate = _Translation(model, data, document, path, report, synonyms or {})
        translate.all(error.errors(include_url=False))
        return None


def sketch(model: type[M], data: object, depth: int) -> M | None:
    """The data without its invalid parts as a model, or None if nothing useful is left.

    For further checks only (so that a misspelt option does not hide an error in the query), never for
    running. `depth` is the number of keys that lead to a removed part: 1 removes the whole value of a top
    key.
    """
    if not isinstance(data, dict):
        return None
    try:
        return model.model_validate(data)
    except ValidationError as error:
        cut = dict(data)
        for top, *below in {
            found["loc"][:depth] for found in error.errors(include_url=False) if found["loc"]
        }:
            if below and isinstance(cut.get(top), dict):
                cut[top] = {key: value for key, value in cut[top].items() if key != below[0]}
            else:
                cut.pop(top, None)
    try:
        return model.model_validate(cut)
    except ValidationError:
        return None


def _choices(group: Iterable[ErrorDetails]) -> Iterator[str]:
    """The words that a union takes in place of its other types."""
    return (str(error["ctx"]["expected"]) for error in group if error["type"] == "literal_error")


class _Translation:
    """The errors of one model over one part of a document."""

    def __init__(
        self,
        model: type[BaseModel],
        data: object,
        document: Document,
        path: Path,
        report: Report,
        synonyms: Mapping[str, str | None],
    ) -> None:
        self.model = model
        self.data = data
        self.document = document
        self.path = path
        self.report = report
        self.synonyms = synonyms
        self.secrets = list(secrets_in(data))

    def all(self, errors: list[ErrorDetails]) -> None:
        """Report all errors. Those of a union's members at one place become one sentence."""
        placed: dict[Path, list[ErrorDetails]] = {}
        for error in errors:
            placed.setdefault(self._inner_path(error), []).append(error)
        for inner, group in placed.items():
            below = any(other[: len(inner)] == inner and len(other) > len(inner) for other in placed)
            wanted = [want for error in group if (want := _wanted(error["type"]))]
            if wanted and below:
                continue  # a union: the intended member has an error further inside
            if wanted:
                self._wrong_type(inner, [*_choices(group), *wanted], group[0])
                continue
            reasons = [error for error in group if error["type"] == "value_error"]
            for error in reasons or group[:1]:
                self._report(inner, error)

    def _inner_path(self, error: ErrorDetails) -> Path:
        """The error's location without the names of union members, which are not in the file."""
        inner: list[str | int] = []
        current: Any = self.data
        location = error["loc"]
        for number, part in enumerate(location):
            is_last_key = number == len(location) - 1 and error["type"] in ("missing", "extra_forbidden")
            written = _as_written(current, part)
            if written is not None:
                current = current[written]
                inner.append(written)
            elif is_last_key:
                inner.append(part)
        return tuple(inner)

    def _report(self, inner: Path, error: ErrorDetails) -> None:
        kind, where = error["type"], (*self.path, *inner)
        if kind == "extra_forbidden":
            self._unknown_key(inner)
        elif kind == "missing":
            span = self.document.key_span(where[:-1])
            self.report.error("R102", f"the key '{inner[-1]}' is missing in {_name(where[:-1])}", span)
        elif kind in ("value_error", "assertion_error"):
            self._rule_of_model(inner, error)
        else:
            message = f"{_name(where)} {self._constraint(kind, error)}"
            if not kind.endswith(("too_short", "too_long")):
                message += f", not {self._shown(inner, error['input'])}"
            self.report.error("R104", self._clean(message), self.document.value_span(where))

    def _wrong_type(self, inner: Path, wanted: list[str], error: ErrorDetails) -> None:
        where = (*self.path, *inner)
        value = error["input"]
        message = (
            f"{_name(where)} must be {' or '.join(dict.fromkeys(wanted))}, not {self._shown(inner, value)}"
        )
        self.report.error(
            "R103", self._clean(message), self.document.value_span(where), _type_hint(wanted, value)
        )

    def _unknown_key(self, inner: Path) -> None:
        where = (*self.path, *inner)
        key = str(inner[-1])
        known = [name for model in _models_at(self.model, inner[:-1]) for name in yaml_keys(model)]
        hint = did_you_mean(self.synonyms.get(key) or key, known)
        if did_you_mean(key, CLAUSES) and {"sql", "datasource"}.intersection(known):
            hint = "conditions stand in the query: SELECT … FROM … WHERE …"
        if key == "scope" and "sql" in known:
            hint = (
                "a rule sees the events of its own gateway; "
                "the action cloud merges its rows over all gateways, and "
                "penstock cloud backfill runs it over archived events of each"
            )
        if self._ends_without_value(where):
            hint = "a comma in { … } ends a value: put the text before it in quotes, or on a line of its own"
        if hint is None and known:
            hint = _keys_hint(list(_models_at(self.model, inner[:-1])))
        self.report.error(
            "R101", f"unknown key '{key}' in {_name(where[:-1])}", self.document.key_span(where), hint
        )

    def _ends_without_value(self, where: Path) -> bool:
        """True for `b FROM m` in `{sql: SELECT a, b FROM m, actions: …}`: YAML takes it for a key."""
        end = self.document.key_span(where).end
        return self.document.text.text[end:].lstrip()[:1] in (",", "}")

    def _rule_of_model(self, inner: Path, error: ErrorDetails) -> None:
        """Report an error of our validators; a sentence that begins with a quoted key is about that key."""
        where = (*self.path, *inner)
        message = str(error.get("ctx", {}).get("error", error["msg"]))
        quoted = re.match(r"'([^']+)'", message)
        key = None if quoted is None else _as_written(self._at(inner), quoted[1])
        span = self._span_of(where) if key is None else self.document.key_span((*where, key))
        if message.startswith("must"):
            message = f"{_name(where)} {message}"
        self.report.error("R104", self._clean(message), span)

    def _at(self, inner: Path) -> object:
        """The data at a path."""
        found: Any = self.data
        for part in inner:
            found = found[part]
        return found

    def _span_of(self, where: Path) -> Span:
        place = self.document.place(where)
        is_mapping = place.style == "collection" and place.key is not None
        return self.document.key_span(where) if is_mapping else self.document.value_span(where)

    def _constraint(self, kind: str, error: ErrorDetails) -> str:
        context = error.get("ctx", {})
        if kind in _BOUNDS:
            key, words = _BOUNDS[kind]
            return f"must be {words} {context[key]}"
        if kind in ("literal_error", "enum"):
            return f"must be {context['expected']}"
        if kind in ("string_too_short", "too_short"):
            return (
                "must not be empty"
                if context["min_length"] == 1
                else f"needs at least {context['min_length']} items"
            )
        if kind in ("string_too_long", "too_long"):
            return f"must not be longer than {context['max_length']}"
        if kind == "string_pattern_mismatch":
            return PATTERNS.get(context["pattern"], f"must match {context['pattern']}")
        return f"is not valid: {error['msg']}"

    def _shown(self, inner: Path, value: object) -> str:
        return STARS if any(is_secret_name(part) for part in inner) else describe(value)

    def _clean(self, message: str) -> str:
        return redact(message, self.secrets)


def _as_written(data: object, key: str | int) -> str | int | None:
    """The key or index as it stands in the data, if it does: the keys of sinks may be in any case."""
    if isinstance(data, list):
        return key if isinstance(key, int) and key < len(data) else None
    if not isinstance(data, dict):
        return None
    if key in data:
        return key
    return next((name for name in data if isinstance(name, str) and name.lower() == str(key).lower()), None)


def _wanted(kind: str) -> str | None:
    for ending in ("_type", "_parsing", "_from_float"):
        if kind.endswith(ending):
            return _WANTED.get(kind.removesuffix(ending))
    return _WANTED.get(kind)


def _type_hint(wanted: list[str], value: object) -> str | None:
    if isinstance(value, Secret):
        return "a secret cannot stand here"
    if (
        "true or false" in wanted
        and isinstance(value, str)
        and value.lower() in ("on", "yes", "off", "no", "y", "n")
    ):
        return "write true or false; on, off, yes and no are text"
    if (
        wanted[0] in ("a whole number", "a number")
        and isinstance(value, str)
        and re.fullmatch(r"[-+]?\d+(\.\d+)?", value)
    ):
        return "remove the quotes"
    if wanted == ["text"] and isinstance(value, int | float):
        return "put it in quotes"
    if wanted == ["a list"] and isinstance(value, dict):
        return "begin each item with '-'"
    return None


def describe(value: object) -> str:
    """A value of a file in words, cut if long; secrets as stars.

    >>> describe(True), describe("on"), describe([1]), describe(None), describe(1.5)
    ('true', "text 'on'", 'a list', 'null', '1.5')
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f"text '{value if len(value) <= 40 else value[:37] + '...'}'"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else str(value)[:40]


def _name(path: Path) -> str:
    """The name of the value at a path in messages: its key, with an index if it is in a list."""
    if not path:
        return "the file"
    if isinstance(path[-1], int):
        return f"item {path[-1] + 1}" + (f" of '{path[-2]}'" if len(path) > 1 else "")
    return f"'{path[-1]}'"


KEYS_SHOWN = 20
"""The most keys that a hint lists; of more it leaves out those that a setting shares with others, as every
action does."""


def _keys_hint(models: Sequence[type[BaseModel]]) -> str:
    """The keys that there are."""
    known = {name for model in models for name in yaml_keys(model)}
    shared = {name for model in models for base in model.__bases__ for name in _keys_of(base)}
    own = known - shared
    if len(known) <= KEYS_SHOWN or own == known:
        return f"known keys are {', '.join(sorted(known))}"
    listed = f"keys of its own are {', '.join(sorted(own))}; " if own else ""
    return f"{listed}docs/reference/sinks.md has the others"


def _keys_of(base: type) -> Iterable[str]:
    return yaml_keys(base) if issubclass(base, BaseModel) else ()


def _models_at(annotation: object, path: Path) -> Iterator[type[BaseModel]]:
    """The models that a value at `path` below a value of this type may belong to."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _models_at(arguments[0], path)
    elif origin in (Union, UnionType):
        for member in arguments:
            yield from _models_at(member, path)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not path:
            yield annotation
        elif field := yaml_keys(annotation).get(str(path[0])):
            yield from _models_at(field.annotation, path[1:])
    elif origin in (list, tuple, dict) and path:
        yield from _models_at(arguments[-1], path[1:])

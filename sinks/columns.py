"""Check that the columns which an action names are columns of its rule: in the topic, URL or path, in the
template, in `fields`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rules.model import ActionProblem
from sinks.dynamic import Target
from sinks.settings import SinkSettings
from sinks.template.reads import fields_read
from sql import Plan
from sql.errors import closest, did_you_mean
from sql.record import replace

_ONE_BRACE = re.compile(r"(?<!\{)\{([^\W\d]\w*)\}(?!\})")
"""`{machine}`, which is literal text here."""


def check_columns(settings: SinkSettings, plan: Plan) -> tuple[SinkSettings, list[ActionProblem]]:
    """The unchanged settings, and problems with columns that no row has; none if the columns are unknown.

    In a topic, URL or path such a column is an error, for no row could be sent. Elsewhere it is a warning:
    rows are sent without it, as eKuiper does.
    """
    if plan.output_columns is None:
        return settings, []
    columns = {*plan.output_columns, *([settings.rowkind_field] if settings.rowkind_field else [])}
    return settings, [
        *_in_target(settings, columns),
        *_in_template(settings, columns),
        *_chosen(settings, columns),
    ]


def _alias(settings: SinkSettings, name: str) -> str:
    return str(type(settings).model_fields[name].alias or name)


def _in_target(settings: SinkSettings, columns: set[str]) -> Iterator[ActionProblem]:
    text = dict(settings)[settings.target] if settings.target else None
    if not isinstance(text, str):
        return  # nothing is filled in, or it is a secret
    where = _alias(settings, str(settings.target))
    for name in Target(settings.target_text, settings.target_kind).columns:
        if name not in columns:
            yield _unknown(where, name, columns)
    for found in _ONE_BRACE.finditer(text):
        if (meant := closest(found[1], columns)) is not None:
            yield _as_it_stands(where, found[0], meant)


def _in_template(settings: SinkSettings, columns: set[str]) -> Iterator[ActionProblem]:
    text: Any = settings.data_template
    if not isinstance(text, str):
        return
    for read in dict.fromkeys(fields_read(text, single=settings.send_single)):
        if read.of == "rows":
            yield ActionProblem(
                f"the template reads .{read.name} of a list: each result is a list of rows",
                ("dataTemplate",),
                f"add 'sendSingle: true', or write {{{{range .}}}}{{{{.{read.name}}}}}{{{{end}}}}",
            )
        elif read.of == "row" and read.name not in columns:
            yield replace(_unknown("dataTemplate", read.name, columns), severity="warning")
    for found in _ONE_BRACE.finditer(text):
        if found[1] in columns:
            yield _as_it_stands("dataTemplate", found[0], found[1])


def _chosen(settings: SinkSettings, columns: set[str]) -> Iterator[ActionProblem]:
    """Problems with columns sent or left out; none if a template or `dataField` makes the columns."""
    if settings.data_template is not None or settings.data_field is not None:
        return
    for where, names in (("fields", settings.row_fields or []), ("excludeFields", settings.exclude_fields)):
        for number, name in enumerate(names):
            if name not in columns:
                yield replace(_unknown(where, name, columns, number), severity="warning")


def _unknown(where: str, name: str, columns: set[str], *path: int) -> ActionProblem:
    hint = did_you_mean(name, columns) or f"its columns are {', '.join(sorted(columns))}"
    return ActionProblem(
        f"'{where}' reads the column '{name}', which the query does not give", (where, *path), hint
    )


def _as_it_stands(where: str, written: str, meant: str) -> ActionProblem:
    return ActionProblem(f"{written} is sent as it stands", (where,), f"write {{{{.{meant}}}}}", "warning")

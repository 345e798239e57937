"""The annotations of a statement: what each means, and those that have no effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sql import syntax as ast
from sql.errors import Problems, did_you_mean
from sql.plan.logical import Plan

DESCRIPTIVE = frozenset({"description", "tag", "public", "private", "protected"})
"""Annotations that say something about a statement and change nothing anywhere."""

EFFECTIVE = frozenset({"name", "priority", "iterableunbound"})
"""Annotations that change what a statement does."""

DROP = "before UPDATE ISTREAM it keeps events from all statements: @Drop update istream E where …"

HINTS = ("reclaim_group_aged", "reclaim_group_freq")


def name_of(statement: ast.Statement) -> str | None:
    """The name that `@Name` gives a statement."""
    return next((str(note.value) for note in _named(statement, "name")), None)


def priority_of(statement: ast.Statement) -> int:
    """The number of `@Priority`; 0 without one."""
    note = next(_named(statement, "priority"), None)
    return note.value if note is not None and isinstance(note.value, int) else 0


def keeps_last(statement: ast.Statement) -> bool:
    """True with `@IterableUnbound`."""
    return any(_named(statement, "iterableunbound"))


def reclaim_ms(problems: Problems, statement: ast.Statement) -> tuple[int, int] | None:
    """The age at which an unused group is dropped, and how often that is done, of
    `@Hint('reclaim_group_aged=…')`."""
    hints: dict[str, str] = {}
    for note in _named(statement, "hint"):
        if isinstance(note.value, str):
            hints |= dict(part.strip().split("=", 1) for part in note.value.split(",") if "=" in part)
    if "reclaim_group_aged" not in hints:
        return None
    try:
        age = float(hints["reclaim_group_aged"])
        every = float(hints.get("reclaim_group_freq", age))
    except ValueError:
        message = "reclaim_group_aged and reclaim_group_freq are numbers of seconds"
        problems.error("B526", message, statement.span)
        return None
    return round(age * 1000), round(every * 1000)


def _named(statement: ast.Statement, name: str) -> Iterator[ast.Annotation]:
    return (note for note in statement.annotations if note.name == name)


# --- without effect -----------------------------------------------------------------------------------------


def check_annotations(problems: Problems, select: ast.Select, plan: Plan) -> None:
    """Warn of annotations, and of hints, that have no effect."""
    for note in select.annotations:
        if note.name == "hint":
            _check_hint(problems, note, select.sources, plan)
        elif note.name not in DESCRIPTIVE | EFFECTIVE:
            problems.warn(
                "B706",
                f"the annotation @{note.name} has no effect",
                note.span,
                DROP if note.name == "drop" else did_you_mean(note.name, ["name", "hint", "description"]),
            )


def _check_hint(problems: Problems, note: ast.Annotation, sources: Sequence[ast.Source], plan: Plan) -> None:
    words = [part.strip().split("=", 1)[0] for part in str(note.value).split(",")]
    for word in words:
        if word not in HINTS:
            problems.warn(
                "B706",
                f"the hint '{word}' has no effect",
                note.span,
                did_you_mean(word, HINTS) or f"known hints are {' and '.join(HINTS)}",
            )
    if words == [HINTS[1]] and plan.sources and all(source.reclaim_ms is None for source in plan.sources):
        message = f"{HINTS[1]} has no effect without {HINTS[0]}, the age of what is reclaimed"
        problems.warn("B706", message, note.span, "@Hint('reclaim_group_aged=10,reclaim_group_freq=30')")
        return
    grouped = any(
        call.name == "groupwin"
        for source in sources
        if isinstance(source, ast.StreamSource)
        for call in source.windows
    )
    if not (grouped or plan.keeps_groups) and any(word in HINTS for word in words):
        problems.warn(
            "B706",
            "reclaim hints have no effect without groupwin, or GROUP BY without a window",
            note.span,
            "a group goes with the last of its events when that leaves the window"
            if plan.group_by
            else "group the windows: E#groupwin(k)#length(5)",
        )

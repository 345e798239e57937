"""Pages about the language: windows, functions, aggregates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from edge.docs.markdown import FENCE, code, result, table
from sql.algebra.derived.analytic_catalog import Analytic

if TYPE_CHECKING:
    from sql.aggregates.base import Aggregate
    from sql.functions.definition import Function


def windows() -> str:
    """All windows of the three languages, with the operators they consist of."""
    from sql.algebra.sample.windows.group_entry import GROUP_ENTRIES
    from sql.algebra.windows.catalog import WINDOWS
    from sql.algebra.windows.facts import filled
    from sql.algebra.windows.lots import lot_parts

    heads = ("window", "composition", "cost per event", "state", "clock", "what it holds", "example")

    def rows(found: Iterable[Any]) -> Iterator[Sequence[str]]:
        for spec in found:
            yield (
                code(spec.signature),
                "; ".join(stage.written({}) for stage in spec.composition),
                str(spec.cost),
                filled(spec.state, {}),
                spec.clock,
                spec.summary,
                code(spec.example),
            )

    epl = tuple(WINDOWS.values())
    roles = {
        "Windows that let events in at once": ("retain",),
        "Windows that hold events back and release them together": ("batch",),
        "A window per key": ("group", "merge"),
        "Derived-value windows": ("derived",),
    }
    parts = [
        "# Windows\n\nEvery window is a composition of a few operators; "
        "the page [windows](../windows.md) explains them with pictures.\n\n`Retain` keeps events until "
        "its policy lets them go, `Gate` holds them back until "
        "its trigger, `Sample` shows what is there, `Key` has one instance per key, "
        "`Intersect` keeps what all its windows keep, `Union` what any of them keeps. "
        "d, p, t and m are lengths of time, n and c counts, k keys.\n",
        "## In GROUP BY\n\n`FILTER(WHERE …)` before the window, "
        "`OVER(PARTITION BY …)` for one window per key.\n",
        table(heads, rows(GROUP_ENTRIES[name] for name in sorted(GROUP_ENTRIES))),
    ]
    parts += [
        f"\n## {title}\n\n{table(heads, rows(s for s in epl if s.role in names))}"
        for title, names in roles.items()
    ]
    parts.append(f"\n## Stream queries\n\n{table(heads, rows(lot_parts()))}")
    return "\n".join(parts)


ANALYTIC_LEAD = (
    "They run on each event as it comes, before WHERE, and keep values between events. "
    "`OVER (PARTITION BY k)` keeps them for each key by itself, "
    "`OVER (WHEN condition)` for events that meet the condition: "
    "at others they give what they gave, and remember nothing. An event that fails leaves no trace in them."
)


METADATA = """
## Metadata of a message

| call | meaning |
| --- | --- |
| `meta(topic)` | the topic that the message came on |
| `meta(qos)` | its quality of service, 0 or 1 |
| `meta(messageid)` | the number of its packet; 0 for QoS 0 |
| `meta(retained)` | TRUE where the broker had kept it |
| `meta(m.topic)` | of stream `m`, in a join |
| `meta(*)` | all of it, as an object |

`mqtt(…)` is the same. Rows of a memory topic have its name as `topic`. Where there is
no topic, for rows of `insert into`, of files and of HTTP, it is NULL.
Parts of the topic are columns where the stream declares them, `columns: {machine: topic(2)}`, as in
[this recipe](../cookbook/payloads.md#machine-from-the-topic). In a test, `meta` of a step stands for it:
`{send: {temp: 21}, meta: {topic: plant/7/temp}}`.
"""


def _signature(item: Function | Aggregate) -> str:
    out = []
    for parameter in item.parameters:
        word = f"{parameter.name}, …" if parameter.variadic else parameter.name
        out.append(f"[{word}]" if parameter.optional else word)
    return f"{item.name}({', '.join(out)})"


def functions() -> str:
    """The scalar functions by category, and those that are not scalar."""
    import sql.functions  # noqa: F401 - fills the registry
    from sql.algebra.derived.analytic_catalog import ANALYTIC_FUNCTIONS
    from sql.binder.calls.call_binder import SPREADS, WINDOW_FUNCTIONS
    from sql.binder.calls.earlier_calls import PREVS
    from sql.binder.kuiper import HITS
    from sql.functions.refused import REFUSED
    from sql.functions.registry import all_functions

    found = all_functions()
    parts = [
        "# Functions\n\nNames are case-insensitive. "
        "A NULL argument gives NULL unless the function says otherwise. A "
        "wrong value makes the row an error event, never a crash; "
        "nothing is converted between strings and numbers in silence."
    ]
    for category in dict.fromkeys(item.category for item in found):
        parts.append(f"\n## {category}\n")
        parts += [_function(item) for item in found if item.category == category]
    parts.append(f"\n## Analytic functions\n\n{ANALYTIC_LEAD}\n")
    parts += [_analytic(item) for item in ANALYTIC_FUNCTIONS]
    parts.append("\n## Functions about windows and earlier events\n")
    rows = [(f"{name}()", f"the window's {what}") for name, what in WINDOW_FUNCTIONS.items()]
    rows += [(f"{name}(…)", "earlier events of a window of FROM, or of the stream") for name in PREVS]
    rows += [
        (f"{name}()", f"how often, or when last, the clause was met: {', '.join(where)}")
        for name, where in HITS.items()
    ]
    rows += [(f"{name}(…)", "makes rows or columns of a value; one per SELECT") for name in SPREADS]
    rows += [
        (
            "grouping(key)",
            "1 in a row of `rollup`, `cube` or `grouping sets` that is not of this key, else 0",
        ),
        (
            "grouping_id(key, …)",
            "the same for several keys: digits of a binary number, in the order of GROUP BY",
        ),
    ]
    rows.append(("row_number()", "numbers the rows of one output; OVER(PARTITION BY … ORDER BY …)"))
    parts.append(table(("function", "meaning"), [(code(name), meaning) for name, meaning in rows]))
    parts.append(METADATA)
    parts.append("\n## Refused\n")
    parts.append(table(("function", "why"), [(code(name), reason) for name, reason in REFUSED.items()]))
    return "\n".join(parts)


def _analytic(item: Analytic) -> str:
    """The description of an analytic function, with its results event by event."""
    examples = []
    for example in item.examples:
        columns = list(example.events[0])
        rows = [
            (*(result(event[name]) for name in columns), result(value))
            for event, value in zip(example.events, example.results, strict=True)
        ]
        examples.append(table((*map(code, columns), code(example.call)), rows))
    return f"### {item.signature}\n\n{item.doc}\n\n" + "\n\n".join(examples) + "\n"


def _function(item: Function) -> str:
    types = ", ".join(f"{p.name} {p.type.value}" for p in item.parameters)
    returns = "" if callable(item.returns) else f" → {item.returns.value}"
    nulls = ""
    if item.parameters:
        nulls = "NULL gives NULL" if item.nulls == "propagate" else "takes NULL"
    notes = [note for note in (f"also {', '.join(item.aliases)}" if item.aliases else "", nulls) if note]
    examples = "\n".join(f"{text}  →  {result(value)}" for text, value in item.examples)
    head = f"### {_signature(item)}\n\n{' '.join(item.doc.split())}"
    signature = code(types + returns) if types or returns else ""
    about = f"\n\n{signature}{' · ' if notes else ''}{' · '.join(notes)}".rstrip()
    return f"{head}{about}\n\n{FENCE}\n{examples}\n{FENCE}\n"


def aggregates() -> str:
    """The aggregate functions."""
    import sql.aggregates  # noqa: F401 - fills the registry
    from sql.aggregates.base import all_aggregates

    parts = [
        "# Aggregates\n\nAll skip NULL unless they say otherwise. `distinct x`, `filter: condition` (or "
        "`FILTER(WHERE …)`) and `group_by: keys` work with each where they make sense. Sums are exact; one "
        "definition serves every window, so an aggregate gives the same answer however its values leave.\n"
    ]
    for item in all_aggregates():
        notes = [f"also {', '.join(item.aliases)}"] if item.aliases else []
        notes += [f"per event {item.cost}", *(["also over what has left"] if item.ever else [])]
        notes += ["partial results merge"] if item.mergeable else []
        examples = "\n".join(f"{text}  →  {result(value)}" for text, value in item.examples)
        shape = f"\n\n{FENCE}\n{examples}\n{FENCE}" if examples else ""
        parts.append(f"## {_signature(item)}\n\n{' '.join(item.doc.split())}\n\n{' · '.join(notes)}{shape}\n")
    return "\n".join(parts)

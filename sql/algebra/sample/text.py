"""Writing the loop of a sampled rule: where slots stand, and how an event's columns and values are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sql.algebra.sample.instance import Tap
from sql.catalog.streams import Catalog
from sql.codegen.expression_code import NUMBER, Code
from sql.codegen.expression_writer import ExpressionWriter
from sql.codegen.functions import FunctionSet
from sql.codegen.loop import LoopWriter
from sql.codegen.names import Names
from sql.codegen.reader import RowReader
from sql.codegen.source import SourceWriter
from sql.plan.bound import AggregateCall, Bound
from sql.plan.logical import Plan
from sql.rows import Shape

LOCALS = frozenset((
    "Group", "Instance", "Shown", "at", "bad", "begins", "chosen", "core", "cores", "count", "due", "e",
    "edge", "end", "entries", "entry", "error", "event", "events", "every", "family", "fire", "fold", "g",
    "get_part", "given", "group", "groups", "instants", "is_tight", "key", "leave", "made", "members", "now",
    "number", "numbers", "out", "p", "panes", "part", "passing", "pending", "put", "r", "results", "row",
    "rows", "rule", "sample", "show", "shown", "times", "totals", "trigger", "w_end", "w_start", "w_trigger",
    "x", "y",
))  # fmt: skip
"""The names of the functions' locals: a constant or a helper of the rule gets another name."""

CONTAINERS = ("{}", "[]", "deque()")
"""First values of slots that are never replaced while a window is open, so that a loop
may hold them in locals."""


class Loop:
    """Writes statements about one event: `e`, its instant `at`, the instance `p`, the values of the rule."""

    def __init__(
        self,
        source: SourceWriter,
        plan: Plan,
        functions: FunctionSet,
        catalog: Catalog,
        shape: Shape,
        slots: dict[Any, Code],
    ) -> None:
        self.source = source
        self.plan = plan
        self.functions = functions
        self.catalog = catalog
        self.shape = shape
        self.slots = slots | self._hits()
        self.is_timed = False
        """True if events come with an instant each."""
        self.tap: Tap | None = None
        self.kept: dict[str, str] = {}
        """The slots of an instance with their first values."""
        self.aliases: Mapping[str, str] = {}
        """Further locals of a loop over one instance."""
        self.hoisted: set[str] = set()
        self.opens = "core.open(p, at)"
        """The call that notes an instance whose window opens; its result is the next deadline."""
        self.common_lines = 0
        """The text up to this line does not depend on aggregates."""
        self.renew()

    def beside(self, source: SourceWriter) -> Loop:
        """A loop of the same rule in another text."""
        return Loop(source, self.plan, self.functions, self.catalog, self.shape, self.slots)

    @property
    def names(self) -> Names:
        """The global names of the text."""
        return self.functions.names

    def renew(self) -> None:
        """Forget which columns are loaded: what follows is not reached by way of where they were."""
        joined = bool(self.plan.joins)
        reader = RowReader(self.names, self.catalog, self.shape, self.slots, joined=joined)
        writer = self.functions.writer
        self.expressions = ExpressionWriter(reader, self.names, writer.warnings, writer.context)
        self.writer = LoopWriter(self.source, reader, self.expressions)

    def _hits(self) -> dict[Any, Code]:
        """The counters that the plan's hit functions read."""
        sources = [self.functions.reader.hits.of(place) for place in range(len(self.plan.hits))]
        return {
            ("hit", place): Code(f"{self.names.bind(hits, 'hits')}.{attribute}", False, False, NUMBER)
            for place, (hits, attribute) in enumerate(sources)
        }

    def line(self, text: str) -> None:
        """One statement."""
        self.source.line(text)

    def block(self, header: str) -> AbstractContextManager[None]:
        """A compound statement."""
        return self.source.block(header)

    def observed(self, call: str) -> None:
        """Write a call of the tap, if there is one."""
        if self.tap is not None:
            self.line(f"{self.names.bind(self.tap, 'tap')}.{call}")

    def own(self, name: str) -> str:
        """The text of a slot of the instance at hand."""
        return name if name in self.hoisted else f"p.{name}"

    @contextmanager
    def hoisting(self) -> Iterator[None]:
        """Around statements about one instance: its containers become locals."""
        containers = {name: f"p.{name}" for name, first in self.kept.items() if first in CONTAINERS}
        for name, text in {**containers, **self.aliases}.items():
            self.line(f"{name} = {text}")
            self.hoisted.add(name)
        yield
        self.hoisted.clear()

    def named(self, node: Bound, name: str) -> str:
        """The name of a value: a literal gets one too."""
        text = self.writer.atom(node, name)
        if not text.isidentifier():
            self.line(f"{name} = {text}")
            return name
        return text


def instance_class(source: SourceWriter, name: str, slots: dict[str, str]) -> None:
    """Write the class of instances: the slots of window and content with their first values."""
    with source.block(f"class {name}:"):
        source.line(f"__slots__ = {('key', 'order', 'queued', *slots)!r}")
        with source.block("def __init__(p, key):"):
            source.line("p.key = key")
            source.line("p.order = p.queued = None")
            for slot, first in slots.items():
                source.line(f"p.{slot} = {first}")
    source.line("")


def is_numeric(call: AggregateCall) -> bool:
    """True if a call reads numbers only, of every event, so that they may wait to be folded."""
    is_plain = not call.distinct and call.filter is None and call.group_by is None
    return call.definition.of_numbers is not None and len(call.args) <= 1 and not call.constants and is_plain

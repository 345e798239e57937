"""The definition of a scalar function, from which arity, types and manual page follow, and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from sql.record import Record
from sql.types import Type

if TYPE_CHECKING:
    from random import Random
    from zoneinfo import ZoneInfo

Implementation = Callable[..., Any]


class Parameter(Record):
    """One parameter: its name and type; `optional` may be left out, `variadic` takes all further arguments.

    as_text     takes a number or a boolean of the data by its text, as eKuiper does; a literal is refused
    constant    requires an expression that reads nothing, so that it can be checked before the rule runs
    check       raises `DataError` for an invalid value; before the rule runs, if the argument reads nothing
    """

    name: str
    type: Type = Type.ANY
    optional: bool = False
    variadic: bool = False
    as_text: bool = False
    constant: bool = False
    check: Callable[[Any], object] | None = None


class Function(Record):
    """A scalar function.

    nulls      'propagate': a NULL argument gives NULL and the implementation is not called;
               'pass': it sees None.
    context    the implementation takes a `Context` as first argument (clock, random numbers, time zone):
               such functions repeat in tests and replays because the runtime gives them time and seed.
    in_pairs   the parameters take turns, a pair after another; an odd number of arguments is refused
    returns    the result type, or a function of the argument types.
    origin     the file or plug-in that it comes from; empty for those of the engine.
    inline     a Python expression with {0}, {1} … for the arguments (each used once,
               known not NULL) that stands in for the call in generated code where all arguments are known
               to be text; it equals the implementation there.
    """

    name: str
    implementation: Implementation
    category: str
    doc: str
    parameters: tuple[Parameter, ...] = ()
    returns: Type | Callable[[Sequence[Type]], Type] = Type.ANY
    nulls: Literal["propagate", "pass"] = "propagate"
    context: bool = False
    in_pairs: bool = False
    aliases: tuple[str, ...] = ()
    examples: tuple[tuple[str, Any], ...] = ()
    inline: str | None = None
    origin: str = ""

    @property
    def arity(self) -> tuple[int, int | None]:
        """Fewest and most arguments; None for no upper bound."""
        least = sum(not parameter.optional and not parameter.variadic for parameter in self.parameters)
        most = None if any(parameter.variadic for parameter in self.parameters) else len(self.parameters)
        return least, most

    def parameter(self, index: int) -> Parameter:
        """The parameter that takes the argument at `index`; the last one if it is variadic."""
        if self.in_pairs:
            return self.parameters[index % 2]
        return self.parameters[min(index, len(self.parameters) - 1)]

    def result_type(self, arguments: Sequence[Type]) -> Type:
        """The type of a call with these argument types."""
        return self.returns(arguments) if callable(self.returns) else self.returns


class Context:
    """The inputs of a function beside its arguments. The runtime owns it; time is the query's, not the
    system's."""

    __slots__ = ("_random", "now_ms", "partition", "properties", "rule_id", "start_ms", "zone")

    def __init__(
        self,
        *,
        now_ms: int = 0,
        zone: ZoneInfo | None = None,
        random: Random | None = None,
        rule_id: str = "",
        start_ms: int = 0,
        properties: dict[str, Any] | None = None,
        partition: Sequence[Any] | None = None,
    ) -> None:
        from zoneinfo import ZoneInfo

        self.now_ms = now_ms
        self.zone = zone or ZoneInfo("UTC")
        self._random = random
        self.rule_id = rule_id
        self.start_ms = start_ms
        self.properties = properties or {}
        self.partition = partition

    @property
    def random(self) -> Random:
        """Random numbers, the same at each run. Made at the first use: it is larger than many a rule."""
        if self._random is None:
            from random import Random

            self._random = Random(0)
        return self._random

"""Methods of lists, EPL's enumeration methods: of `window(*)`, `sorted(e)`, repeated tags, rows of
subqueries, arrays of events.

A method takes nothing, a lambda over each element, a number, another list, or a column. A condition holds
where it is TRUE. A value that is NULL counts in no sum, average, least or greatest value. The method of NULL,
or with a list that is NULL, is NULL. `sumOf` and `average` are the aggregates `sum` and `avg` over the
elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any

from sql.aggregates.base import NO_EVENT, Accumulator
from sql.aggregates.sums import Average, Sum
from sql.functions.definition import Function, Parameter
from sql.record import Record
from sql.types import Type, key_of, order_key

Items = Sequence[Any]
Each = Callable[[Any], Any]
"""The value of a lambda for an element."""


class ListMethod(Record):
    """A method of lists by what it takes; None where it does not take that.

    plain      nothing
    each       a lambda: called with the elements and the lambda
    number     a whole number
    other      another list
    event      `*` or a column of the elements, which are events, and perhaps a number of events before
    condition  the lambda is a condition
    keeps      what it gives are elements of the list, one or several
    ordered    what takes nothing is that of a `sorted` column
    from_last  an index is counted from the last element
    """

    plain: Function | None = None
    each: Callable[[Items, Each], Any] | None = None
    number: Function | None = None
    other: Function | None = None
    event: Function | None = None
    condition: bool = False
    keeps: bool = False
    ordered: bool = False
    from_last: bool = False
    returns: Type = Type.ANY

    def counted(self, items: Items, value: Callable[[Any, int, int], Any]) -> Any:
        """The same with a lambda that takes the index of an element and the number of elements as well."""
        assert self.each is not None
        number = len(items)
        places = range(number)[::-1] if self.from_last else range(number)
        found = self.each([*zip(places, items, strict=True)], lambda pair: value(pair[1], pair[0], number))
        if not self.keeps or found is None:
            return found
        return [item for _, item in found] if isinstance(found, list) else found[1]


def _plain(name: str, implementation: Callable[[Items], Any], returns: Type = Type.ANY) -> Function:
    return Function(name, implementation, "internal", "A method of a list.", (Parameter("items"),), returns)


def _number(name: str, implementation: Callable[[Items, int], Any], returns: Type = Type.ARRAY) -> Function:
    parameters = Parameter("items"), Parameter("number", Type.INTEGER)
    return Function(name, implementation, "internal", "A method of a list.", parameters, returns)


def _other(name: str, implementation: Callable[[Items, Items], Any], returns: Type = Type.ARRAY) -> Function:
    parameters = Parameter("items"), Parameter("others", Type.ARRAY)
    return Function(name, implementation, "internal", "A method of two lists.", parameters, returns)


# --- implementations ----------------------------------------------------------------------------------------


def _from_first(items: Items, number: int = 0) -> Any:
    return items[number] if 0 <= number < len(items) else None


def _from_last(items: Items, number: int = 0) -> Any:
    return items[-1 - number] if 0 <= number < len(items) else None


def _where(items: Items, holds: Each) -> list[Any]:
    return [item for item in items if holds(item) is True]


def _first_where(items: Items, holds: Each) -> Any:
    return next((item for item in items if holds(item) is True), None)


def _last_where(items: Items, holds: Each) -> Any:
    return _first_where(items[::-1], holds)


def _itself(item: object) -> object:
    return item


def _distinct(items: Items, value: Each = _itself) -> list[Any]:
    """The first element of each value, in order."""
    found: dict[Any, Any] = {}
    for item in items:
        found.setdefault(key_of(value(item)), item)
    return list(found.values())


def _ordered(items: Items, value: Each = _itself) -> list[Any]:
    return sorted(items, key=lambda item: order_key(value(item)))


def _ordered_down(items: Items, value: Each = _itself) -> list[Any]:
    return sorted(items, key=lambda item: order_key(value(item)), reverse=True)


def _reversed(items: Items) -> list[Any]:
    return list(items[::-1])


def _take(items: Items, number: int) -> list[Any]:
    return list(items[: max(0, number)])


def _take_last(items: Items, number: int) -> list[Any]:
    return list(items[max(0, len(items) - number) :])


def _take_while(items: Items, holds: Each) -> list[Any]:
    return list(takewhile(lambda item: holds(item) is True, items))


def _take_while_last(items: Items, holds: Each) -> list[Any]:
    return _take_while(items[::-1], holds)[::-1]


def _except(items: Items, others: Items) -> list[Any]:
    left_out = set(map(key_of, others))
    return [item for item in items if key_of(item) not in left_out]


def _intersect(items: Items, others: Items) -> list[Any]:
    kept = set(map(key_of, others))
    return [item for item in items if key_of(item) in kept]


def _union(items: Items, others: Items) -> list[Any]:
    return [*items, *others]


def _are_equal(items: Items, others: Items) -> bool:
    return [*map(key_of, items)] == [*map(key_of, others)]


def _alike(values: Iterable[Any]) -> Iterable[list[Any]]:
    """Equal values together, in order of first appearance."""
    found: dict[Any, list[Any]] = {}
    for value in values:
        found.setdefault(key_of(value), []).append(value)
    return found.values()


def _most_frequent(values: Iterable[Any]) -> Any:
    return max(_alike(values), key=len, default=[None])[0]


def _least_frequent(values: Iterable[Any]) -> Any:
    return min(_alike(values), key=len, default=[None])[0]


def _aggregated(accumulator: Accumulator, values: Iterable[Any]) -> Any:
    for value in values:
        accumulator.add(value, NO_EVENT)
    return accumulator.result()


def _sum(values: Iterable[Any]) -> Any:
    return _aggregated(Sum(), values)


def _average(values: Iterable[Any]) -> Any:
    return _aggregated(Average(), values)


def _least(values: Iterable[Any]) -> Any:
    return min((value for value in values if value is not None), key=order_key, default=None)


def _greatest(values: Iterable[Any]) -> Any:
    return max((value for value in values if value is not None), key=order_key, default=None)


def _by(choose: Callable[..., Any]) -> Callable[[Items, Each], Any]:
    """The first element with the least or the greatest value that is known."""

    def chosen(items: Items, value: Each) -> Any:
        known = [item for item in items if value(item) is not None]
        return choose(known, key=lambda item: order_key(value(item)), default=None)

    return chosen


def _over(compute: Callable[[Iterable[Any]], Any]) -> Callable[[Items, Each], Any]:
    """The same over the values of a lambda."""
    return lambda items, value: compute(map(value, items))


def _event(name: str, implementation: Callable[..., Any]) -> Function:
    parameters = Parameter("items"), Parameter("number", Type.INTEGER, optional=True)
    return Function(name, implementation, "internal", "A method of a list.", parameters)


LIST = _plain("list_of", list, Type.ARRAY)
FIRST, LAST = _plain("first_of", _from_first), _plain("last_of", _from_last)

LIST_METHODS: dict[str, ListMethod] = {
    "selectfrom": ListMethod(each=_over(list), returns=Type.ARRAY),
    "where": ListMethod(each=_where, condition=True, keeps=True, returns=Type.ARRAY),
    "countof": ListMethod(
        _plain("count_of", len, Type.INTEGER),
        lambda items, holds: len(_where(items, holds)),
        condition=True,
        returns=Type.INTEGER,
    ),
    "firstof": ListMethod(FIRST, _first_where, condition=True, keeps=True),
    "lastof": ListMethod(LAST, _last_where, condition=True, keeps=True),
    "first": ListMethod(FIRST, event=_event("from_first_of", _from_first), keeps=True),
    "last": ListMethod(LAST, event=_event("from_last_of", _from_last), keeps=True),
    "window": ListMethod(LIST, event=LIST, keeps=True),
    "anyof": ListMethod(
        each=lambda items, holds: any(holds(item) is True for item in items),
        condition=True,
        returns=Type.BOOLEAN,
    ),
    "allof": ListMethod(
        each=lambda items, holds: all(holds(item) is True for item in items),
        condition=True,
        returns=Type.BOOLEAN,
    ),
    "distinctof": ListMethod(
        _plain("distinct_of", _distinct, Type.ARRAY),
        _distinct,
        keeps=True,
        returns=Type.ARRAY,
    ),
    "orderby": ListMethod(
        _plain("ordered_of", _ordered, Type.ARRAY),
        _ordered,
        keeps=True,
        returns=Type.ARRAY,
    ),
    "orderbydesc": ListMethod(
        _plain("ordered_down_of", _ordered_down, Type.ARRAY),
        _ordered_down,
        keeps=True,
        returns=Type.ARRAY,
    ),
    "reverse": ListMethod(_plain("reverse_of", _reversed, Type.ARRAY), keeps=True),
    "take": ListMethod(number=_number("take_of", _take), keeps=True),
    "takelast": ListMethod(number=_number("take_last_of", _take_last), keeps=True),
    "takewhile": ListMethod(each=_take_while, condition=True, keeps=True, returns=Type.ARRAY),
    "takewhilelast": ListMethod(
        each=_take_while_last, condition=True, keeps=True, from_last=True, returns=Type.ARRAY
    ),
    "get": ListMethod(number=_number("get_of", _from_first, Type.ANY), keeps=True),
    "except": ListMethod(other=_other("except_of", _except), keeps=True),
    "intersect": ListMethod(other=_other("intersect_of", _intersect), keeps=True),
    "union": ListMethod(other=_other("union_of", _union), keeps=True),
    "sequenceequal": ListMethod(other=_other("equals_of", _are_equal, Type.BOOLEAN)),
    "mostfrequent": ListMethod(_plain("most_frequent_of", _most_frequent), _over(_most_frequent)),
    "leastfrequent": ListMethod(_plain("least_frequent_of", _least_frequent), _over(_least_frequent)),
    "arrayof": ListMethod(LIST, _over(list), returns=Type.ARRAY),
    "toarray": ListMethod(LIST, keeps=True),
    "sumof": ListMethod(_plain("sum_of", _sum, Type.NUMBER), _over(_sum), returns=Type.NUMBER),
    "average": ListMethod(_plain("average_of", _average, Type.FLOAT), _over(_average), returns=Type.FLOAT),
    "min": ListMethod(_plain("least_of", _least), _over(_least)),
    "max": ListMethod(_plain("greatest_of", _greatest), _over(_greatest)),
    "minby": ListMethod(FIRST, _by(min), ordered=True, keeps=True),
    "maxby": ListMethod(LAST, _by(max), ordered=True, keeps=True),
    "listreference": ListMethod(LIST, keeps=True),
}
"""By name in small letters. `minby()`, `maxby()` and `listreference()` are those of a `sorted` column."""

KEEPING = tuple(
    function
    for method in LIST_METHODS.values()
    if method.keeps
    for function in (method.plain, method.number, method.other, method.event)
    if function is not None
)
"""The functions of methods that give elements of the list. Functions need not be hashable."""

"""The nodes of a pattern by the book: what each does with a true and a false of its
children, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from itertools import product
from typing import Any

from sql.calendar.crontab import Crontab
from sql.plan import pattern_plan as plans
from sql.plan.pattern_plan import StepPlan
from sql.types import key_of
from tests.reference.expressions import Row, holds
from tests.reference.pattern_instance import Binding, Instance, events


class Filter(Instance):
    def begin(self) -> None:
        self.numbered()
        self.twin.listeners.append(self)

    def fits(self, row: Row) -> bool:
        return self.alive and holds(self.step.condition, self.place(own=row))

    def hear(self, row: Row) -> None:
        if not self.alive:
            return
        tag = self.step.tag
        binding = self.binding if tag is None else (*self.binding[:tag], row, *self.binding[tag + 1 :])
        self.tell(binding, over=not isinstance(self.parent, Every | Repeat))


class Observer(Instance):
    """timer:interval, timer:at, timer:schedule without its own dates: what `due_after` says."""

    def begin(self) -> None:
        self.numbered()
        due = self.due_after()
        if due is not None and due <= self.twin.now:
            self.tell(self.binding, over=True)
        elif due is not None:
            self.due = due
            self.twin.timed.append(self)

    def due_after(self) -> int | None:
        if isinstance(self.step, plans.AtPlan):
            return Crontab.parse([part.text for part in self.step.fields], UTC).next_after(self.twin.now)
        length = self.length(self.step.length)
        return None if length is None else length.add(self.twin.now, UTC)

    def fire(self) -> None:
        self.tell(self.binding, over=True)


class FollowedBy(Instance):
    def begin(self) -> None:
        self.maxima = [self.value(each) for each in self.step.maxima]
        self.at: dict[Instance, int] = {}
        self._next(0, self.binding)

    def _next(self, place: int, binding: Binding) -> None:
        made = self.child(self.step.steps[place], binding)
        self.at[made] = place
        made.begin()

    def on_true(self, child: Instance, binding: Binding, over: bool) -> None:
        if not self.alive or child not in self.children:
            return
        place = self.at[child]
        if over:
            self.children.remove(child)
        if place == len(self.step.steps) - 1:
            self.tell(binding, over=not self.children)
            return
        waiting = sum(self.at[each] == place + 1 for each in self.children)
        if self.maxima[place] is None or waiting < self.maxima[place]:
            self._next(place + 1, binding)
        elif not self.children:
            self.fail()

    def on_false(self, child: Instance, restartable: bool = True) -> None:
        if self.alive and child in self.children:
            self.children.remove(child)
            if not self.children:
                self.fail()


class Several(Instance):
    """Parts that begin together, left to right, until one decides the whole."""

    def begin(self) -> None:
        self.parts = [self.child(part, self.binding) for part in self.step.parts]
        self.matched: list[list[Binding]] = [[] for _ in self.parts]
        for part in self.parts:
            if self.alive and part.alive:
                part.begin()


class And(Several):
    def on_true(self, child: Instance, binding: Binding, over: bool) -> None:
        if not self.alive or child not in self.children:
            return
        place = self.parts.index(child)
        if over:
            self.children.remove(child)
        self.matched[place].append(binding)
        others = [each for i, each in enumerate(self.matched) if i != place]
        if not all(others):
            return
        ended = all(isinstance(each, Not) for each in self.children)
        if ended:
            self.quit()
        for found in product(*others):
            self.parent.on_true(self, merged(binding, found), ended)

    def held(self) -> set[int]:
        return super().held().union(*(events(each) for side in self.matched for each in side))


def merged(binding: Binding, others: Sequence[Binding]) -> Binding:
    """The tags of all sides."""
    values = list(binding)
    for other in others:
        values = [mine if theirs is None else theirs for mine, theirs in zip(values, other, strict=True)]
    return tuple(values)


class Or(Several):
    def on_true(self, child: Instance, binding: Binding, over: bool) -> None:
        if self.alive and child in self.children:
            self.tell(binding, over)

    def on_false(self, child: Instance, restartable: bool = True) -> None:
        if self.alive and child in self.children:
            self.children.remove(child)
            if not self.children:
                self.fail()


class Not(Instance):
    def begin(self) -> None:
        self.child(self.step.operand, self.binding).begin()
        if self.alive:
            self.tell(self.binding, over=False)

    def on_true(self, child: Instance, binding: Binding, over: bool) -> None:
        if self.alive and over:
            self.fail()

    def on_false(self, child: Instance, restartable: bool = True) -> None:
        self.children = []  # what cannot happen any more is absent for ever


class Every(Instance):
    """`every` and `every-distinct`; each child has the keys that its predecessor knew."""

    def begin(self) -> None:
        self.keys: dict[Instance, dict[Any, int]] = {}
        self._spawn({})

    def _spawn(self, keys: dict[Any, int]) -> None:
        made = self.child(self.step.operand, self.binding)
        self.keys[made] = dict(keys)
        self.starting: Instance | None = made
        self.turned = False
        made.begin()
        self.starting = None
        if self.turned and made in self.children:
            self.children.remove(made)
            made.quit()

    def on_true(self, child: Instance, binding: Binding, over: bool) -> None:
        if child is self.starting:
            self.turned = True
            return
        if not self.alive or child not in self.keys:
            return
        if over and child in self.children:
            self.children.remove(child)
        known = self.keys[child]
        told = self._is_new(known, binding)
        if not isinstance(child, Filter):
            self._spawn(known)
        if told:
            self.tell(binding, over=False)

    def _is_new(self, known: dict[Any, int], binding: Binding) -> bool:
        if not self.step.keys:
            return True
        length = None if self.step.length is None else self.length(self.step.length)
        for key, stored in list(known.items()):
            if length is not None and length.add(stored, UTC) <= self.twin.now:
                del known[key]
        key = tuple(key_of(self.value(each, binding)) for each in self.step.keys)
        if key in known:
            return False
        known[key] = self.twin.now
        return True

    def on_false(self, child: Instance, restartable: bool = True) -> None:
        if not self.alive or child not in self.children:
            return
        self.children.remove(child)
        if child is not self.starting:
            self._spawn({})


class Repeat(Instance):
    def begin(self) -> None:
        step = self.step
        self.low, self.high = self.value(step.low), self.value(step.high)
        if self.low is not None and self.high is not None and self.low > self.high:
            self.low, self.high = self.high, self.low
        self.count = 0
        self.lists: dict[int, list[Any]] = {}
        self.stop = None if step.until is None else self.child(step.until, self.binding)
        if self.stop is not None:
            self.stop.begin()
        self.matcher: Instance | None = None
        if self.alive:
            self._match()

    def _match(self) -> None:
        self.matcher = self.child(self.step.operand, self.binding)
        self.matcher.begin()

    def on_true(self, child: Instance, binding: Binding, over: bool) -> None:
        if not self.alive or child not in self.children:
            return
        if child is self.stop:
            if self.low is not None and self.count < self.low:
                self.fail()
            else:
                self._tell(binding)
            return
        self.count += 1
        for tag in self.step.tags:
            rows = binding[tag] if isinstance(binding[tag], list) else [binding[tag]]
            if binding[tag] is not None:
                self.lists.setdefault(tag, []).extend(rows)
        if over:
            self.children.remove(child)
        if self.count == self.low == self.high:
            self._tell(binding)
        elif self.high is not None and self.count >= self.high:
            child.quit()
            self.children = [each for each in self.children if each is not child]
        elif over:
            self._match()

    def _tell(self, binding: Binding) -> None:
        values = list(binding)
        for tag in self.step.tags:
            values[tag] = self.lists.get(tag, self.binding[tag])
        self.tell(tuple(values), over=True)

    def held(self) -> set[int]:
        return super().held() | events(tuple(self.lists.values()))


class Within(Instance):
    def begin(self) -> None:
        self.numbered()
        length, self.left = self.length(self.step.length), self.value(self.step.maximum)
        self.child(self.step.operand, self.binding).begin()
        if self.alive and self.children and length is not None:
            self.due = length.add(self.twin.now, UTC)
            self.twin.timed.append(self)

    def on_true(self, child: Instance, binding: Binding, over: bool) -> None:
        if not self.alive or child not in self.children:
            return
        if self.left is not None and self.left <= 0:
            self.fail()
            return
        self.left = None if self.left is None else self.left - 1
        self.tell(binding, over)


class While(Instance):
    def begin(self) -> None:
        self.child(self.step.operand, self.binding).begin()

    def on_true(self, child: Instance, binding: Binding, over: bool) -> None:
        if not self.alive or child not in self.children:
            return
        value = self.value(self.step.condition, binding)
        if over:
            self.children.remove(child)
        if value:
            self.tell(binding, over)
        elif value is not None:
            self.fail()


KINDS: dict[type[StepPlan], type[Instance]] = {
    plans.FilterPlan: Filter,
    plans.IntervalPlan: Observer,
    plans.AtPlan: Observer,
    plans.FollowedByPlan: FollowedBy,
    plans.AllOfPlan: And,
    plans.AnyOfPlan: Or,
    plans.AbsentPlan: Not,
    plans.EveryPlan: Every,
    plans.RepeatPlan: Repeat,
    plans.WithinPlan: Within,
    plans.WhilePlan: While,
}

"""Patterns of events as a state machine.

A pattern is a tree of nodes; running, it is a tree of instances. An instance is started with a binding (the
tags bound so far) and reports to its parent

* **true** (a binding, and whether it is over): it has matched,
* **false**: it can never match again, and is over.

A parent may `quit` an instance, which ends it without a report. Nothing else is exchanged, so each kind of
node is one small class, and everything else (order, time, snapshots, bounds) is decided in one place.

Where to start reading: `running_pattern` (the face: `Pattern`), `nodes` (nodes and instances), then any of
the kinds: `filters`, `observers`, `sequence`, `logic`, `every`, `repeat`, `guards`. `pattern_builder` makes
the nodes of a plan, once for all patterns that run by it; `machine` is what the instances of one pattern
share, `listening` finds those that an event fits. Patterns of two events run without nodes: `pairs`.
"""

from sql.algebra.pattern.pattern_builder import PatternBuilder
from sql.algebra.pattern.running_pattern import Pattern

__all__ = ["Pattern", "PatternBuilder"]

"""Patterns of events as a state machine.

A pattern is a tree of nodes; running, it is a tree of instances. An instance is started with a binding (the
tags bound so far) and reports to its parent

* **true** (a binding, and whether it is over): it has matched,
* **false**: it can never match again, and is over.

A parent may `quit` an instance, which ends it without a report. Nothing else is exchanged, so each kind of
node is one small class, and everything else (order, time, snapshots, bounds) is decided in one place:

    an event ──► `listening`: the filters that it fits,  ──► take ─┐
                 found by value, in order of their start           │
    time ──────► `machine`: the timers that are due,     ──► fire ─┤
                 in order of (due, start)                          ▼
                                               an instance: true or false
                                                                   │ to its parent, which starts and
                                                                   │ quits others
                                                                   ▼
                                               the root: a match

Where to start reading: `running_pattern` (the face: `Pattern`), `nodes` (nodes and instances), then any of
the kinds: `filters`, `observers`, `sequence`, `logic`, `every`, `repeat`, `guards`. `pattern_builder` makes
the nodes of a plan, once for all patterns that run by it; `machine` is what the instances of one pattern
share.

`pairs` is a second form, for the pattern that people write most: `every a -> b(k = a.k)`, in a given time or
not, and its absence. One compiled loop over a dictionary and a queue is two to six times as fast as its
instances would be.
"""

from sql.algebra.pattern.pattern_builder import PatternBuilder
from sql.algebra.pattern.running_pattern import Pattern

__all__ = ["Pattern", "PatternBuilder"]

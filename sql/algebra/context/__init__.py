"""The life cycle of contexts: which partitions there are, and which of them an event belongs to.

    plan  ──►  LevelDefinition       one per level of the context: keys and conditions as functions
                    │
    Lifecycle ──►  Level             one per level and partition around it: watches, finds, keeps
                    │ Ends           what ends its partitions
                    ▼
               Partition ──► Level   of a nested context, inside it
                    │
                    ▼
                 bodies              of the innermost: the statements, which `Bodies` starts, feeds and stops

An `Arrival` is an event on its way. `Lifecycle.arrive` lets the outermost level act on it: partitions end,
then start, and those that it belongs to become its targets. The `Bodies` are called with each start,
first event and end at once (`sql.engine.context`). Time comes from one heap of deadlines,
through `Lifecycle.fire`.

    levels              from a plan to a life cycle: the kinds of levels
    context_conditions  what starts and ends partitions: events, patterns, crontabs, periods
    keyed               keyed, hash and category levels; `hashes` are those of `coalesce by`
    initiated           non-overlapping and overlapping levels
    level               the base of all kinds
    ends                ends by time, silence, events, patterns; `end_atoms`: what may move a pattern
    lifecycle           ids, bounds, starts and ends, saved state
    partition           partitions, arrivals, and levels as these see them
    by_property         an index of partitions by the property that a column of the event must equal
    selectors           the partitions that a read covers
"""

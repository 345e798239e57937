"""The life cycle of contexts: the starts and ends of partitions, and the routing of events to them.

    level_definitions   the levels of a context as functions: made once from a plan
    lifecycle           the tree of live partitions, their ids, the heap of their deadlines
    partition           partitions, the contract of levels, events on their way
    keyed, trigger_levels   the kinds of levels
    ends                the kinds of ends: by time, silence, events, patterns; indexed where correlated
    by_property         partitions and statements in them, by the property that a column must equal
    selectors           the partitions that a query on demand reads

It contains no statements: a `Bodies` is called for each partition that starts, gets an event, ends.
"""

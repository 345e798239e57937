"""The life cycle of contexts: the starts and ends of partitions, and the routing of events to them.

    level_definitions   the levels of a context as functions: made once from a plan
    lifecycle           the tree of live partitions, their ids, the heap of their deadlines
    keyed, categories, trigger_levels   the kinds of levels
    ends                the conditions that end partitions, by event (indexed where correlated) and by time
    selectors           the partitions that a query on demand reads

It contains no statements: a `Bodies` is called for each partition that starts, gets an event, ends.
"""

"""The life cycle of contexts: when partitions start and end, and which of them an event belongs to.

    definitions   what the levels of a context are, as functions: made once from a plan
    lifecycle     the tree of live partitions, their ids, the heap of their deadlines
    keyed, hashed, categories, span, overlapping   the kinds of levels
    ends          the conditions that end partitions, by event (indexed where correlated) and by time
    selectors     which partitions a read looks at

It knows no statements: a `Bodies` is told which partition starts, gets an event, ends.
"""

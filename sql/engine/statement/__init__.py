"""A running statement, on the compiled text of its plan.

running_statement      what drives it: events, changes of relations, time, reads, snapshots
statement_instances    its kinds: stream queries, statements in event time
statement_core         what its parts work on: windows, join, groups, earlier events
statement_sources      what an event, a match or time changes in its windows and its join
matches, recognized    sources that are patterns, or have match_recognize
subqueries, evaluation what it reads beside its events
into, groups           what is accumulated: in rows of a table, or in groups
statement_output       the present content as rows, and from rows to emissions
requests               emissions that wait for the end of a span
once                   a statement without FROM
"""

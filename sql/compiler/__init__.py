"""From a plan to Python: each operator writes its part of one function.

`statement_text` compiles EPL statements and stream queries;
`fold` writes groups and aggregates, `show` the rows, `push` the loop over incoming events,
`enter` what an admitted event does, `joins` the loops that join relations.
`feeding` counts into tables, `acting` is what triggers do, `answer` what subqueries give.
The text is an artefact: nothing reads it back.
"""

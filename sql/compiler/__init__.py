"""From a plan to Python: each operator writes its part of one function.

`statement` compiles EPL statements and stream queries; `fold` writes groups and aggregates, `show` the rows,
`arrivals` the loop over incoming events with the windows that have inline text. Of relations `driven` joins,
`feeding` counts into tables, `acting` is what triggers do, `answer` what subqueries give. The text is an
artefact: nothing reads it back.
"""

"""The text of a statement, each module a part of it.

`fold` writes groups and aggregates, `show` the rows, `push` the loop over incoming events,
`enter` what an admitted event does, `joins` the loops that join relations, `feeding` counts into tables.
"""

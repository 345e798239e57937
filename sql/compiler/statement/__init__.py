"""The text of a statement, each module a part of it.

`driving` says how events enter the statement, `push` writes the loop over them, `enter` what an admitted
event does, `change` one update of called windows, `show` the rows, `join_text` the loops of joins, `row_fold`
what counts in rows of tables. `statement_text` puts the parts together on a `statement_frame`.
"""

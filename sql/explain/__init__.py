"""Show a plan as a tree of the algebra, and its work as a picture of events over time.

`tree` reads a plan only. `recording` runs it on recorded events and notes in a `timeline` the events that
enter and leave its windows; `timeline_text` and `svg` draw that.
Nothing here changes the execution of a rule.
"""

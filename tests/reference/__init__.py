"""The slow twin: what the engine must compute, said as plainly as possible.

It reads the same bound plans as the engine, keeps what arrived and answers by looping over lists. Nothing is
incremental, nothing is generated. From the engine it takes only the comparison of values (`sql.types`) and
the scalar functions; expressions, aggregates, windows and rows are its own.

Start with `samples.py` (eKuiper's windows), then `members.py`, `windows.py` and `changes.py` (what the
windows of a statement hold and post) and `lots.py` (stream queries). Times are UTC: calendars and time zones
have their own tests.
"""

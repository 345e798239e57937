"""Scenarios with changed queries and changed events, to find where the ways of running a rule differ.

Nothing is known about what a changed scenario must give. So it runs event by event, and what it gives then is
expected of the other ways: events in batches, the state saved and restored between steps, events as structs,
each rule put in its own place or read between steps, other rules beside it, time that goes on in smaller
steps, and the slow twin where it can compute the rule. A refusal needs a place in the text, an error of one
event a reason in the terms of SQL, and every run must end.

`python -m tests.conformance.mutation FILE.jsonl --seconds 60 --seed 7` searches and prints each finding as a
line; with `--composed N` it begins with scenarios made from nothing, whose statements
feed each other; with `--replay` the file holds such lines. `judge.py` says what a finding is.
"""

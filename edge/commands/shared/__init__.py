"""Parts that several commands use: their arguments, and the input and output of rule files and recordings.

*_arguments, argument_types   arguments of a gateway, a rule file, a spool, a Spark job
recorded, event_files, mixed  recorded events in their formats
problem_formats, junit        problems and test results for other programs
progress, watching            a progress line; repetition when a file changes
broker_look, payload_notes    checks of the broker and of messages
chains, first_partitions, reconciling   parts of `replay`, `explain` and `cloud reconcile`
"""

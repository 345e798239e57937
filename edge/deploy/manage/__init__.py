"""Management over HTTP, compatible with eKuiper's tools.

routes   requests for streams, tables, rules and rulesets
files    the files in `managed/` that they write
audit    the log of changes
"""

"""The kinds of stores that lookup tables query event by event: the values of TYPE of such a table.

Every other TYPE is a source, which fills the table.
"""

STORES = ("http", "redis", "sql")

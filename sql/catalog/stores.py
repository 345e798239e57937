"""The kinds of stores that lookup tables ask for rows, event by event: what TYPE of such a table may say.

Every other TYPE is a source, which fills the table.
"""

STORES = ("http", "redis", "sql")

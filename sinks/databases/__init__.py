"""Databases of the `sql` sink and of lookup tables.

base         the interface, and the kinds of failure
sqlite       SQLite, which comes with Python
alchemy      other databases, through SQLAlchemy
time_limit   the end of a call to a server that hangs
denials      errors that a repetition cannot avoid, with their remedies
"""

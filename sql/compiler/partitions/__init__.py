"""Statements in contexts: whose state in a partition is a cell, and the loop that finds the partition of an
event."""

"""The compiled text of twenty rules."""

"""Retention policies: they remove events by number, time, key, order or predicate."""

"""Statements of all kinds: queries, triggered statements on relations, declarations."""

"""Statements over named windows and tables: declarations, triggers, subqueries, questions."""

"""The twin of relations: named windows, tables, triggers, joins and subqueries."""

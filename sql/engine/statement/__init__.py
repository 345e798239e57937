"""The parts of a running statement: sources, subqueries, groups, content, output."""

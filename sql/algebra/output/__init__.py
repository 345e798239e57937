"""The output of a statement: output limits, order, rows of arrays."""

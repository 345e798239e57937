"""Writing Python: expressions over a row, the loads of columns, output rows, the lines of a module."""

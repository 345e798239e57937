"""Generation of Python code: expressions over a row, loads of columns, output rows, lines of a module."""

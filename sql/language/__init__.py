"""Reading SQL: text of eKuiper SQL, EPL and stream queries becomes the tree of `sql.syntax`.

sqlglot lives in this package and nowhere else: a dialect of ours gives it few keywords, and its parser's tables and
methods are filled with rules that build our nodes.
"""

from sql.language.reading import parse, parse_expression

__all__ = ["parse", "parse_expression"]

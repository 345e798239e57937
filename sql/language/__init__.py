"""The SQL parser: text of eKuiper SQL, EPL and stream queries becomes the tree of `sql.syntax`.

Only this package imports sqlglot: a dialect of ours gives it few keywords, and our rules, which build our
nodes, fill the tables and methods of its parser. One class per part of the grammar, each on top of the one
before: `cursor`, `expression_parser`, `call_parser`, `source_parser` (with `pattern_parser`),
`output_parser`, `select_parser`, `definition_parser`, `dialect`; `reading` drives them.

Codes of the problems found here:

| code | meaning |
|---|---|
| P001 | a word or sign that cannot stand there, or a statement that ends too early |
| P002 | a character that belongs to no token |
| P003, P004 | a string or quoted name, a comment, that never ends |
| P005 | text longer than `lexical.TEXT_CHARS_MAX` |
| P006 | nesting deeper than `expressions.NESTING_MAX`, a tree deeper than `reading.DEPTH_MAX` |
| P007 | a bracket without its partner |
| P008 | a malformed number |
| P009 | a clause that stands twice or in the wrong place |
| P010, P011 | a statement that begins with an unknown word; no statement at all |
| P012 | a join without ON, a cross join with ON |
| P013 | an option that stands twice |
| P017, P018, P019 | an annotation, a step or a timer that a pattern cannot have |
| P090 | a construct that is known but not supported |
"""

from sql.language.reading import parse, parse_declared, parse_expression

__all__ = ["parse", "parse_declared", "parse_expression"]

"""From a syntax tree to a plan: names and types become known, and all problems are reported at once.

rule, select_binder, items     the text of a rule; a SELECT; its items, rows and output limit
scope, binding, place          what a name means; what the binders of one statement share; where they stand
expressions, calls             a tree of operators and names; calls of functions, a module for each kind
sources, windows, patterns     FROM: streams, the windows of three languages, patterns and match_recognize
contexts, relations            partitions and their properties; named windows and tables
statements                     the other kinds of statements: which one a tree is, triggers, declarations
clause_checks, effects, kuiper what contradicts itself or has no effect; what only eKuiper's rules have
"""

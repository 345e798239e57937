"""Plans: statements whose names and types are known, before any operator exists. Plain data.

bound, clauses, logical         expressions; the clauses of a query; whole statements, with their `options`
declared, relation_plan         declarations; what statements read and change of relations
lookup_plan                     requests to stores
pattern_plan, recognize_plan    patterns, match_recognize
context_plan, correlation       contexts; the equalities by which an event finds a partition
arrival, traces, event_keys     what follows from a plan: when filters act, what lasts, how events divide
walk, rewriting, signature      all expressions of a plan; reads replaced; which saved state fits it
"""

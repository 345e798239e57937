"""Sampled rules: a window in GROUP BY.

sampled_code     what is compiled once for a plan
sampled_query    one running rule
shared_groups    rules that find the same groups share one set of them
window_family    rules that differ in a constant share one loop
"""

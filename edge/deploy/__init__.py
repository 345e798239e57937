"""Deployment: from the rule directory to running rules.

watch          detects changes in the directory
reading        reads the files in a child process
checks         what a gateway could not run, with its place
manager        deploys, swaps and stops rules; start reading here
rule_runner, deployed_rule   the query and the actions of a rule
tables, row_shapes     tables and named windows; the shape of the rows of a stream
feeds, stream_sources, memory_streams, lookup_stores   what feeds the streams and tables
connections    the brokers, their topics, the status message
grace, schedules, circles   rules without a file, rules that run at times, rules that feed each other
problem_log    problems of rule files in the log
recover        state and rules after a restart
manage         management over HTTP
"""

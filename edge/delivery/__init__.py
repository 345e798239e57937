"""Delivery: the way of results from the engine to sinks and spools.

outbox        results on their way, numbered; start reading here
actions, assigned   the actions of each rule, made from its file and kept over a reload
inline_action, mqtt_action, spool_action   actions that the loop runs itself; others have a thread
              (`sinks.delivery`)
mqtt_lines    connections that mqtt actions share, among themselves and with sources
spools, cloud_path   the spools, and the uploaders behind them
effects, lasting, delivery_journal   durable effects of a commit; receipts of sinks
dead_letters, letters, refusals, rejections   what could not be processed or delivered
expectations  counts of rows that break the checks of their rule
taps          listeners of `penstock tap`
caches        removal of cache files without an action
"""

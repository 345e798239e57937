"""Intake: from sources to decoded rows.

sources        MQTT, files, HTTP, simulator: one file each
open_sources   the sources that run, paused and resumed together
queue, backlog, lanes   messages that wait, their order, and the turns of topics
handover       messages that a connection holds in a pause
redelivery, message_keys, broker_state   repetitions by the broker and by publishers
router         from topic to streams
streams        from messages to rows, with one decoding for all rules; start reading here
codecs         the payload formats, one file each
topic_columns, origins   columns from the topic; the topic of an event that failed
lessons        findings about columns and types of payloads
lookups        stores of lookup tables
"""

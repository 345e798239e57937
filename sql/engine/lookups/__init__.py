"""Joins with tables of external stores.

    lookup_table     one such table: the answers it keeps, and the rules that wait for each
    waiting_events   the queue of waiting events; each join: the key of an event, what an answer makes of it
    lookup_query     the rule behind its joins; events enter it with the rows found
    answers          how answers enter the engine

The engine queries no store itself. It lists its requests (`Catalog.requests`), and is given answers
(`answers.answer`) as it is given events: both are inputs, so a replay of them gives the same rows.
"""

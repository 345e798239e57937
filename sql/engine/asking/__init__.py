"""Joins with tables that a store outside answers for.

    table   one such table: the answers it keeps, and who waits for which
    ask     one join: the key of an event, the events that an answer makes of it
    room    where events wait, in order
    query   the rule behind its joins, which they enter with the rows found
    answers how answers enter the engine

The engine asks nobody itself. It names its requests (`Catalog.requests`), and is given answers
(`answers.answer`) as it is given events: both are inputs, so a replay of them gives the same rows.
"""

"""Stores that lookup tables ask for rows: databases, HTTP servers, Redis.

    base     what a store is, and its settings
    kinds    the kinds there are
    sql, http, redis   one kind each
    plain    values of a store as JSON knows them
    worker   threads that ask one store, and try again while somebody waits
    stores   all of them: requests go out, answers come in

The engine says what is to be asked and waits itself (`sql.engine.asking`); nothing here delays the loop. Answers
are recorded in the journal before they take effect, as messages are, so a replay asks nobody.
"""

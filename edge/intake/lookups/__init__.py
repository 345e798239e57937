"""Stores that lookup tables query for rows: databases, HTTP servers, Redis.

    base     the interface of a store, and its settings
    kinds    the kinds there are
    sql, http, redis   one kind each
    worker   threads that query one store, and try again while an event waits
    refusals the refusals of a store, and when a request is sent again

`edge.deploy.lookup_stores` runs them: requests go out, answers come in.

The engine makes the requests and waits itself (`sql.engine.lookups`); nothing here delays the loop. Answers
are recorded in the journal before they take effect, as messages are, so a replay sends no request.
"""

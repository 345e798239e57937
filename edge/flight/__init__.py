"""The flight recorder: why a live rule fired or did not, and what passes right now.

Nothing is traced while the rules run. The journal has the last messages and ticks, with snapshots before
them; the engine is deterministic, so a private one that is given the same does the same, and shows how.

    rerun     a private gateway without broker and sinks that goes through the journal again
    census    what the messages of a stream held: topics, columns, types, time stamps
    observe   one rule during a rerun: its events, conditions, windows and results
    facts     what only the running gateway knows: connections, deliveries, rules that do not run
    causes    from both to findings: where the way of the events ends, and by what
    render    the findings as text
    moment    the last events as an inline test
    child     a process of its own for all this, so that the gateway's loop is not held
    ask       starting that process, in the threads of the HTTP server
    taps      events, rows and dead letters handed to listeners as they pass
    record    tapped events as lines of a file
"""

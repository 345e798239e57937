"""The flight recorder: why a live rule fired or did not, and the data passing now.

Nothing is traced while the rules run. The journal has the last messages and ticks, with snapshots before
them; the engine is deterministic, so a private one with the same input does the same, and can be observed.

    rerun         a private gateway without broker and sinks that goes through the journal again
    observe       one rule during a rerun: its events, conditions, windows and results
    census        the contents of a stream's messages: topics, columns, types, time stamps
    facts         state of the running gateway that no rerun has: connections, deliveries,
                  rules that do not run
    stages        the way of the events as stages with counts
    causes        from both to findings: the stage where the events end, and the cause
    report        the findings as plain data, and as text
    moment        the last events as an inline test
    lanes         the last events and condition results of each key, for the page
    child         a process of its own for all this, so that the gateway's loop is not held
    ask           starting that process, in the threads of the HTTP server
    listen        what passes a tap as lines of JSON
    flight_pages  all this over HTTP
"""

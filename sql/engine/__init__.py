"""Running queries and the engine that hosts them.

    engine, dispatch, steps    events and time come in, results go out and on: boundary of rules, step loop
    deployment, start          a rule starts and stops; the query of its plan
    roster, timers             the running queries, the readers of each stream, the deadlines
    boundary                   what a rule raises is its own matter
    interplay                  whether statements see each other's effects
    time_stamps                instants of events
    filter_index, families     an event meets only the rules that can match it (`indexable`); rules alike
                               share a loop
    sharing                    rules that share groups, or a stage of event time
    query                      what all queries have in common
    script                     a text of several statements

The queries, by kind: `rowwise_query` (a row for each event), `sampled` (a window in GROUP BY), `statement`
(EPL and stream queries), `relations` (named windows, tables, triggers). Around a query: `event_time`,
`asking` (`answers` of stores), `context` (an instance in each partition). `questions` are answered at once.
"""

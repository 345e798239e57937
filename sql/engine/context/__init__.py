"""Contexts in the engine: each statement runs in every partition of its context.

    ContextHost ────────── Lifecycle          partitions start and end (`sql.algebra.context`)
       │                       │
       │                       ▼
       ├─ Statements           start, give_first, stop: a body for each statement in each partition
       │     ├─ EventQueue     events and ends that wait for a statement, and what has been emitted
       │     └─ Deadlines      one heap for all bodies
       │
       └─ ContextMember        a statement, as the engine sees it: one for all partitions
             └─ Body           in one partition: InstanceBody, a running statement of its own, or
                               Cell, a few values, which one CellStatement changes for all partitions

An event reaches a statement in one of two ways, and both end in `Statements.give`:

one by one   `ContextHost.push` lets the context act on the event. Then the engine pushes it to each member,
             by priority and among all other statements; the member gives it to the partitions it belongs to.
in batches   Where only the context and its statements read a stream, a `Lane` lets the context act on each
             event, and the events wait in the queue until partitions change. `sql.compiler.route` writes its
             loop for contexts in which a key finds the partition.

A cell takes the place of an instance where groups and a simple output limit are all the state
(`sql.compiler.statement.deferral.fits_cells`).

    host                the context: its life cycle, its statements, its time
    context_member      a statement of the context
    bodies              bodies, cells, what they read of their statement
    new_body            how a body is made, and what it sees of its partition
    context_statements  starts, events, ends, deadlines
    event_queue         what waits
    lane                batches
    spread              a relation of the context, over all partitions
    own_context         in event time: a context for one rule alone, with its watermark
"""

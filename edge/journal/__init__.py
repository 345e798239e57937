"""The journal: inputs are durable, state follows.

The gateway is a deterministic function of its inputs: messages, the times at which timers fired, changes of
the rule files. So only the input must be durable before a message is acknowledged, and that is an append:

    data/journal/00000000000000000000.journal     segments, named by the position of their first byte
    data/snapshots/00000000000004711000.snapshot  the state at a position of the journal; the two newest
    data/snapshots/000007.pages                   the parts of it that were new then; later ones refer to them

    record      the kinds of records: a batch of messages, a tick, a deployment, receipts of sinks
    frame       a record as bytes: checksum, compression, and the durable position when it was written
    reader      segments to records; distinguishes a torn tail (cut) from damage (counted)
    writer      records to segments; one fdatasync for all records since the last one
    snapshots   state to files, by a forked child, and back
    pages       the parts of a state: those to be written, and those that are there already
    commits     when to sync and acknowledge, when to store the state
    acknowledgements  those that wait for records that are not durable yet
    background  syncs on a thread, where the disk is slow
    wear        bytes written a day
    disk        the file operations, for tests that stop the world between two of them

Recovery (`edge.deploy.recover`) loads the newest snapshot and replays the journal behind it. The rows of
every rule are numbered, and a replay gives them their numbers again: the spool ignores those that it has, and
other sinks get again the rows that they gave no receipt for. Chains of rules over memory topics are inside
the function.

Written: each message once, and what has changed of the state each time the journal has grown by four times
its size. Nothing in the loop waits for the state to be written. A restart replays at the speed of the engine.
"""

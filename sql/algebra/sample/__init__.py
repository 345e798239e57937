"""Sampled windows: rules that emit the content of a window, not its changes (eKuiper's rules).

A sampled rule is a composition:

    core        the loop over events: FILTER, key of the partition, WHERE, then window and content
    windows     when the content is shown, and what leaves: one file for each window
    content     what is kept of the events: folded groups, panes, running groups, rows, events for a join
    instances   one instance of window and content for each key; timers are one heap
    sampled_rows   from what a content shows to rows: HAVING, row_number, SELECT

Where to start reading: `compose` (what a plan is made of), `core` (the loop),
`windows.tumbling` (the simplest window).
"""

"""Sampled windows: rules that emit the content of a window, not its changes (eKuiper's rules).

A sampled rule is a composition:

    core        the loop over events: FILTER, key of the partition, WHERE, then window and content; the
                instances of both, one for each key, whose timers are one heap
    windows     when the content is shown, and what leaves: one file for each window
    content     what is kept of the events: rows, events for a join; `folding`: groups folded late, and panes;
                `running`: groups that events leave one by one, written by the fold of statements
    sampled_rows   from what a content shows to rows: HAVING, row_number, SELECT

Where to start reading: `compose` (what a plan is made of), `core` (the loop),
`windows.tumbling` (the simplest window).
"""

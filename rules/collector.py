"""The garbage collector in a process that runs rules."""

import gc


def calm_collector() -> None:
    """Let the garbage collector run less often than after every 700 new objects.

    Most objects are rows and results that die within their batch, without cycles. The collector would visit
    each of them while it is still in use; a batch later reference counting has freed them. Its second stage
    visits the rest of 200,000 new objects, some 10 ms; with a million, new groups stopped the loop
    for 50 ms and more. A replay of the journal makes as many rows as a run.
    """
    gc.set_threshold(50_000, 4, 250)

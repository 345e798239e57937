"""`penstock cloud stream RULES RAW OUT`: rules with `scope: fleet` over the archived events of all gateways.

    RAW/gw=<gateway>/*.jsonl[.gz] -> events with the keys of each rule -> the engine,
    once for each key -> OUT/<rule>

Structured Streaming reads each file once and keeps the engine's state by key in its state store;
a key's engine runs in `transformWithState`.
What a key has to do at a time of its own (a window that ends) is a timer.

    keying     the keys of events, in Spark's workers
    processor  the engine of one key
    query      the streaming query, and its rows as typed tables
"""

from cloud_sync.spark.streaming.query import Pace, stream

__all__ = ["Pace", "stream"]

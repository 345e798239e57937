"""`groupwin` and `merge`: a window per key."""

from __future__ import annotations

from sql.algebra.windows.catalog import register_window

register_window("groupwin", "std", "group", "keys:keys", None,
        composition="Key(k, window)", cost="+ hash", state="a window per key", clock="that of the window",
        example="E#groupwin(k)#length(5)", summary="a window per key",
        unbounded="groupwin keeps a window for every key ever seen")  # fmt: skip
register_window("merge", "std", "merge", "keys:keys", None,
        composition="end of Key", cost="O(1)", state="none", clock="none",
        example="E#groupwin(k)#length(5)#merge(k)#uni(v)", summary="the end of the grouped part")  # fmt: skip

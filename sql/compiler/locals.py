"""The names that compiled statements use for their own."""

from __future__ import annotations

_NAMES = (
    "a admits ahead arrivals b before brief change changed deltas due e edge end_ms enter entered entering "
    "error events evict fail first found g get gone Group groups h held hide hold holders inserted "
    "is_alone is_new is_roomy join key keys leaving left length_ms made name new now number_in number_out "
    "old older operator out part partition parts prepare present push q r recent removed rows seq show "
    "size stamp stamps subqueries take takes times touched trigger unique visible waits whole window x "
    "y "
)
_PER_MEMBER = [
    f"{name}_{place}"
    for name in ("window", "unique", "size", "end_ms", "admits", "evict")
    for place in range(8)
]
LOCALS = frozenset((*_NAMES.split(), *_PER_MEMBER))
"""The names that the text uses itself: a function or a constant of the rule gets another name."""

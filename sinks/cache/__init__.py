"""`enableCache` of an action: results on disk while their destination is unreachable.

Start reading at `sinks.cache.cached_action`; `sinks.cache.store` is the file.
"""

from sinks.cache.cached_action import CachedDelivery
from sinks.cache.store import cache_path, is_newer, mark_of, results_in

__all__ = ["CachedDelivery", "cache_path", "is_newer", "mark_of", "results_in"]

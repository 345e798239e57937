"""The settings of a `cloud` action beside the query of its rule: what follows from the SELECT,
and what it needs."""

from cloud_sync.binding.action import bind, widen

__all__ = ["bind", "widen"]

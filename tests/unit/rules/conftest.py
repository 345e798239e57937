"""The real sinks, so that actions and their settings are what a gateway knows."""

from __future__ import annotations

import sinks.builtin  # noqa: F401  (registers the actions)

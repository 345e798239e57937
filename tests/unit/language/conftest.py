"""The windows' words, which a whole engine knows."""

from __future__ import annotations

import sql.binder.reading_text  # noqa: F401

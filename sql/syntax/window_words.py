"""The words for windows. Each window of the catalog adds its own, so that a new window is one file."""

from __future__ import annotations

from typing import Literal

GROUP_WINDOWS: dict[str, str] = {}
"""Windows of GROUP BY: the word in lower case, e.g. `tumblingwindow`, and the name of the window."""

LotArgument = Literal["period", "count", "none"]

LOT_WINDOWS: dict[str, LotArgument] = {}
"""Windows of stream queries: the first words, such as `retain`, and the kind of argument, in order."""

"""Text to trees, with the windows of all languages.

The words for windows stand in the entries of the algebra, which the parser below it cannot import.
"""

from __future__ import annotations

import sql.algebra.sample.windows
import sql.algebra.windows  # noqa: F401 - each entry adds its words
from sql.language import parse

__all__ = ["parse"]

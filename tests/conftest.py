"""Settings of the whole test suite: how long hypothesis may look. Choose with HYPOTHESIS_PROFILE=dev|ci|thorough.

The default gives the same examples in every run, so that a red build is about the change and not about luck; `ci` and
`thorough` look for new ones.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_COMMON = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("dev", _COMMON, max_examples=50, derandomize=True)
settings.register_profile("ci", _COMMON, max_examples=300)
settings.register_profile("thorough", _COMMON, max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

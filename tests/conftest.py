"""What every test shares: how hard hypothesis tries. Choose with `--hypothesis-profile NAME`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A deadline fails a test for its neighbours' load, never for a bug of ours.
_STEADY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("dev", _STEADY, max_examples=50)
settings.register_profile("ci", _STEADY, max_examples=200, derandomize=True, print_blob=True)
settings.register_profile("deep", _STEADY, max_examples=10_000)

settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")

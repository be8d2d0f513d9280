# SPDX-License-Identifier: Apache-2.0
"""Let property tests judge results, never the speed of a busy machine."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("results", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("results")

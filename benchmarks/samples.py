# SPDX-License-Identifier: Apache-2.0
"""Sum samples up as figures."""

from __future__ import annotations

from collections.abc import Sequence

from lab.demo.propagation import percentile


def percentiles(name: str, samples_seconds: Sequence[float]) -> dict[str, float]:
    """Give median and 99th percentile of times as `<name>_p50_seconds` and `<name>_p99_seconds`."""
    return {
        f"{name}_p50_seconds": percentile(samples_seconds, 0.5) or 0.0,
        f"{name}_p99_seconds": percentile(samples_seconds, 0.99) or 0.0,
    }

# SPDX-License-Identifier: Apache-2.0
"""Keep the figures that tests measure: printed, and written as JSON for whoever judges them.

The shape is that of `benchmarks/results`: name, when, machine, versions, figures. The folder is `$LAB_FIGURES_DIR`,
else the one that the test gives.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path


def quantile(values: Sequence[float], share: float) -> float:
    """Give the smallest value that at least `share` (0..1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(name: str, seconds: Sequence[float]) -> dict[str, float]:
    """Summarise durations: p50, p99, largest and count, as `<name>_p50_seconds` and so on."""
    return {
        f"{name}_p50_seconds": round(quantile(seconds, 0.5), 4),
        f"{name}_p99_seconds": round(quantile(seconds, 0.99), 4),
        f"{name}_max_seconds": round(max(seconds), 4),
        f"{name}_count": len(seconds),
    }


def record_figures(name: str, figures: Mapping[str, float], *, folder: Path) -> Path:
    """Print the figures and write them to `<folder>/<name>.json`."""
    target = Path(os.environ.get("LAB_FIGURES_DIR") or folder)
    target.mkdir(parents=True, exist_ok=True)
    path = target / f"{name}.json"
    body = {
        "name": name,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"system": platform.platform(), "cpus": os.cpu_count()},
        "versions": {"python": platform.python_version()},
        "figures": dict(figures),
    }
    path.write_text(json.dumps(body, indent=2) + "\n")
    print(f"\n{name}: " + ", ".join(f"{key}={value:g}" for key, value in figures.items()))
    return path

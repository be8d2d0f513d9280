# SPDX-License-Identifier: Apache-2.0
"""Run all benchmarks with their default sizes, one after another; `make bench` calls this."""

from __future__ import annotations

import asyncio
from functools import partial

from benchmarks import boundary, propagation, results, utilisation
from benchmarks.hadoop import run as hadoop
from benchmarks.parenting import run as parenting
from benchmarks.planning import measure as planning
from benchmarks.scale import run as scale
from benchmarks.scale.stage import Size
from lab.processes.progress import Progress

_CHANGES = 150
_RATE_SECONDS = 3.0


def main() -> None:
    """Measure everything and print each result beside the one before."""
    progress = Progress()
    results.run(planning.NAME, lambda: asyncio.run(planning.measure(10_000, 5, progress)), aims=planning.AIMS)
    results.run(propagation.NAME, partial(propagation.measure, _CHANGES, progress), aims=propagation.AIMS)
    results.run(hadoop.NAME, partial(hadoop.measure, hadoop.SIZES, _RATE_SECONDS, progress), aims=hadoop.AIMS)
    results.run(utilisation.NAME, partial(utilisation.measure, 90.0, 3, progress), aims=utilisation.AIMS)
    results.run(boundary.NAME, partial(boundary.measure, 5, progress), aims=boundary.AIMS)
    results.run(parenting.NAME, partial(parenting.measure, progress), aims=parenting.AIMS)
    results.run(scale.NAME, partial(scale.measure, Size(), progress), aims=scale.AIMS)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Run all benchmarks with their default sizes, one after another, or only the named ones; `make bench` calls this."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from benchmarks import boundary, propagation, results, utilisation
from benchmarks.hadoop import run as hadoop
from benchmarks.parenting import run as parenting
from benchmarks.planning import measure as planning
from benchmarks.results import Result
from benchmarks.scale import run as scale
from benchmarks.scale.stage import Size
from lab.processes.progress import Progress

_CHANGES = 150
_RATE_SECONDS = 3.0


def _benchmarks(progress: Progress) -> dict[str, tuple[Callable[[], Result], Mapping[str, float]]]:
    """Give what is measured, and its aims, by name."""
    return {
        planning.NAME: (lambda: asyncio.run(planning.measure(10_000, 5, progress)), planning.AIMS),
        propagation.NAME: (partial(propagation.measure, _CHANGES, progress), propagation.AIMS),
        hadoop.NAME: (partial(hadoop.measure, hadoop.SIZES, _RATE_SECONDS, progress), hadoop.AIMS),
        utilisation.NAME: (partial(utilisation.measure, utilisation.DAY_SECONDS, 3, progress), utilisation.AIMS),
        boundary.NAME: (partial(boundary.measure, 5, Size(), progress), boundary.AIMS),
        parenting.NAME: (partial(parenting.measure, progress), parenting.AIMS),
        scale.NAME: (partial(scale.measure, Size(), progress), scale.AIMS),
    }


def main() -> None:
    """Measure and print each result beside the one before."""
    benchmarks = _benchmarks(Progress())
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(benchmarks)}")
    names = parser.parse_args().names
    unknown = [name for name in names if name not in benchmarks]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(benchmarks)}")
    for name in names or benchmarks:
        measure, aims = benchmarks[name]
        results.run(name, measure, aims=aims)


if __name__ == "__main__":
    main()

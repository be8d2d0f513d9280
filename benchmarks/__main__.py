# SPDX-License-Identifier: Apache-2.0
"""Run all benchmarks with their default sizes, one after another; `make bench` calls this."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from rich.console import Console

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
    _run(planning.NAME, planning.AIMS, lambda: asyncio.run(planning.measure(10_000, 5, progress)))
    _run(propagation.NAME, propagation.AIMS, partial(propagation.measure, _CHANGES, progress))
    _run(hadoop.NAME, hadoop.AIMS, partial(hadoop.measure, hadoop.SIZES, _RATE_SECONDS, progress))
    _run(utilisation.NAME, utilisation.AIMS, partial(utilisation.measure, 90.0, 3, progress))
    _run(boundary.NAME, boundary.AIMS, partial(boundary.measure, 5, progress))
    _run(parenting.NAME, parenting.AIMS, partial(parenting.measure, progress))
    _run(scale.NAME, scale.AIMS, partial(scale.measure, Size(), progress))


def _run(name: str, aims: results.Figures, measure: Callable[[], results.Result]) -> None:
    console = Console()
    before = results.read_or_none(name)
    result = measure()
    path = result.write()
    results.show(result, before, aims=aims, console=console)
    console.print(f"written to {path}")


if __name__ == "__main__":
    main()

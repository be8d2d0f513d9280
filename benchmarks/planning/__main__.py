# SPDX-License-Identifier: Apache-2.0
"""Run as `python -m benchmarks.planning`."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from benchmarks import results
from benchmarks.planning.beside import measure_other, put_beside
from benchmarks.planning.measure import AIMS, NAME, measure
from lab.processes.progress import Progress


def main() -> None:
    """Parse, measure, write and show."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning", description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000, help="nodes, at least 100")
    parser.add_argument("--pods-per-node", type=int, default=5)
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="measure this other checkout first, too")
    parser.add_argument("--results", type=Path, default=results.FOLDER)
    arguments = parser.parse_args()
    sizes = (arguments.nodes, arguments.pods_per_node)

    def measure_all() -> results.Result:
        other = measure_other(NAME, arguments.beside, *sizes) if arguments.beside else None
        result = asyncio.run(measure(*sizes, Progress()))
        return result if other is None else put_beside(result, other)

    results.run(NAME, measure_all, aims=AIMS, folder=arguments.results)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Run the scale benchmark from the command line."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import results
from benchmarks.scale.run import AIMS, NAME, measure
from benchmarks.scale.stage import Size
from lab.processes.progress import Progress


def main() -> None:
    """Measure, write the result and print it beside the one before."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000, help="nodes with a NodeManager (5000)")
    parser.add_argument("--pods", type=int, default=50_000, help="pods, those of the NodeManagers included (50000)")
    parser.add_argument("--steady-seconds", type=float, default=60.0, help="how long to watch it at rest (60)")
    parser.add_argument("--single-changes", type=int, default=20, help="single nodes to change (20)")
    parser.add_argument("--results", type=Path, default=results.FOLDER, help="folder of the result")
    arguments = parser.parse_args()
    if not 1 <= arguments.nodes <= arguments.pods <= 60 * arguments.nodes:
        parser.error("at least one node, and from 1 to 60 pods for each node")
    size = Size(
        nodes=arguments.nodes,
        pods=arguments.pods,
        steady_seconds=arguments.steady_seconds,
        single_changes=arguments.single_changes,
    )
    results.run(NAME, lambda: measure(size, Progress()), aims=AIMS, folder=arguments.results)


if __name__ == "__main__":
    main()

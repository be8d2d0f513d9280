# SPDX-License-Identifier: Apache-2.0
"""Run the benchmark of the Hadoop client from the command line."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import results
from benchmarks.hadoop.run import AIMS, NAME, SIZES, measure
from lab.processes.progress import Progress


def main() -> None:
    """Measure, write the result and print it beside the one before."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hadoop", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=list(SIZES), help="NodeManagers (1000 5000 10000)")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each rate of calls is measured (3)")
    parser.add_argument("--results", type=Path, default=results.FOLDER, help="folder of the result")
    arguments = parser.parse_args()
    if min(arguments.nodes) < 1 or arguments.seconds <= 0:
        parser.error("at least one node and some time")
    results.run(
        NAME, lambda: measure(arguments.nodes, arguments.seconds, Progress()), aims=AIMS, folder=arguments.results
    )


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Run the parenting benchmark from the command line."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import results
from benchmarks.parenting.run import AIMS, NAME, REST_SECONDS, ROUNDS, measure
from lab.processes.progress import Progress


def main() -> None:
    """Measure, write the result and print it beside the one before."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parenting", description=__doc__)
    parser.add_argument("--rest-seconds", type=float, default=REST_SECONDS, help="how long to watch it at rest (15)")
    parser.add_argument("--bursts", type=int, help="how often each number of containers starts (40, 10, 5)")
    parser.add_argument("--results", type=Path, default=results.FOLDER, help="folder of the result")
    arguments = parser.parse_args()
    rounds = {count: arguments.bursts or times for count, times in ROUNDS.items()}
    results.run(NAME, lambda: measure(Progress(), rounds, arguments.rest_seconds), aims=AIMS, folder=arguments.results)


if __name__ == "__main__":
    main()

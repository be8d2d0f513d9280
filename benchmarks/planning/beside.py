# SPDX-License-Identifier: Apache-2.0
"""Measure another checkout of this repository in the same run, so that two versions meet the same machine."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks import results
from benchmarks.results import Result

_PREFIX = "before_"


def measure_other(name: str, checkout: Path, nodes: int, pods_per_node: int) -> Result:
    """Run the planning benchmark of another checkout with this interpreter and give its result.

    Args:
        name: of the benchmark.
        checkout: root of the other checkout.
        nodes: how many.
        pods_per_node: batch pods bound to each.

    Raises:
        RuntimeError: it did not end well, or wrote no result.
    """
    with tempfile.TemporaryDirectory() as folder:
        sizes = ("--nodes", str(nodes), "--pods-per-node", str(pods_per_node))
        command = (sys.executable, "-m", "benchmarks.planning", *sizes, "--results", folder)
        environment = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
        ended = subprocess.run(command, cwd=checkout, env=environment, check=False, stdout=subprocess.DEVNULL)
        other = results.read_or_none(name, Path(folder))
    if ended.returncode or other is None:
        raise RuntimeError(f"the benchmark in {checkout} ended with {ended.returncode} and no usable result")
    return other


def put_beside(result: Result, other: Result) -> Result:
    """Add the cycles of the other checkout to a result, under names that begin with `before_`."""
    cycles = {f"{_PREFIX}{key}": value for key, value in other.figures.items() if "cycle" in key}
    load = other.machine["load_before"]
    note = f"figures {_PREFIX}* are of the version before, measured right before these; the load was {load} then"
    return replace(result, figures={**result.figures, **cycles}, notes=(*result.notes, note))

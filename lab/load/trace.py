# SPDX-License-Identifier: Apache-2.0
"""Hold load as steps in time, written by hand or read from a CSV file.

A file has the header `seconds,node,cpu_milli,memory_bytes` and one step per line; a node keeps a step's load until
its next one. Times are seconds from the start of the play.
"""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from batch_resources.resources import ZERO_BATCH, BatchResources
from lab.errors import LabError

CSV_HEADER = ("seconds", "node", "cpu_milli", "memory_bytes")


class TraceError(LabError):
    """Report a trace file that cannot be read; the message names file and line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Set a node's online load from a moment on."""

    at_seconds: float
    node: str
    load: BatchResources


class Trace:
    """Hold the steps of any number of nodes, sorted by time."""

    def __init__(self, steps: Iterable[Step]) -> None:
        """Sort the steps; steps of one node at one time keep their order, so the last one wins."""
        self.steps: tuple[Step, ...] = tuple(sorted(steps, key=lambda step: step.at_seconds))
        self._times = [step.at_seconds for step in self.steps]

    @property
    def duration_seconds(self) -> float:
        """Give the time of the last step; 0 for an empty trace."""
        return self._times[-1] if self._times else 0.0

    def between(self, after_seconds: float, until_seconds: float) -> tuple[Step, ...]:
        """Give the steps later than one moment and not later than another, in order."""
        return self.steps[bisect_right(self._times, after_seconds) : bisect_right(self._times, until_seconds)]


def read_csv(path: Path) -> Trace:
    """Read a trace file.

    Raises:
        TraceError: The header or a line is not as the module says.
    """
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        if tuple(next(rows, ())) != CSV_HEADER:
            raise TraceError(f"{path}, line 1: the header must be {','.join(CSV_HEADER)}")
        return Trace(_step(path, rows.line_num, row) for row in rows if row)


def _step(path: Path, line: int, row: list[str]) -> Step:
    try:
        at_text, node, cpu_text, memory_text = row
        step = Step(
            at_seconds=float(at_text),
            node=node,
            load=BatchResources(cpu_milli=int(cpu_text), memory_bytes=int(memory_text)),
        )
    except ValueError as error:
        raise TraceError(f"{path}, line {line}: {error}") from error
    if not node or not 0 <= step.at_seconds < float("inf") or not ZERO_BATCH.fits_in(step.load):
        raise TraceError(f"{path}, line {line}: the node must be named and no number may be negative or infinite")
    return step

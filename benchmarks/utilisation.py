# SPDX-License-Identifier: Apache-2.0
"""Measure what the modes leave unused: the demo's day, the same for each, in strict, shared and a fixed split.

    python -m benchmarks.utilisation --seconds 270 --seed 3

What is free counts as unusable while it is not on offer to the side that waits (see `lab.demo.usage`). The fixed split
is a planner of the test tree.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Final

import typer
from rich.console import Console

from benchmarks import machine, results
from benchmarks.results import Result
from lab.cluster import Lab
from lab.controller import Program
from lab.demo.backend import Mode
from lab.demo.performance import Options, perform
from lab.demo.real import RealBackend, lab_users, yarn_options
from lab.demo.summary import Summary
from lab.processes.progress import Progress

NAME: Final = "utilisation"
DAY_SECONDS: Final = 270.0
"""A move of the boundary takes the same seconds in each: a short day makes more of it than there is."""
AIMS: Final[results.Figures] = {"strict_minus_shared_unusable_percent": 5.0, "strict_oversold_samples": 0}
_STATIC: Final = Program(module="tests.lab.program", environment={"PROGRAM_PLANNER": "static"})
_RULES: Final[dict[str, tuple[Mode, Program | None]]] = {
    "strict": (Mode.STRICT, None),
    "shared": (Mode.SHARED, None),
    "static": (Mode.SHARED, _STATIC),
}


def measure(seconds: float, seed: int, progress: Progress) -> Result:
    """Play the day once for each rule, each on a fresh lab."""
    started_on = machine.describe_machine()
    figures: dict[str, float] = {"play_seconds": seconds, "seed": seed}
    for name, (mode, program) in _RULES.items():
        progress.say(f"a day of {seconds:g} s in {name}")
        summary = _play(mode, program, seconds, seed)
        figures |= {f"{name}_{key}": value for key, value in _figures(summary).items()}
    strict, shared = figures["strict_unusable_percent"], figures["shared_unusable_percent"]
    figures["strict_minus_shared_unusable_percent"] = strict - shared
    return Result.of_now(
        NAME,
        figures,
        started_on=started_on,
        hadoop_version="3.5.0",
        notes=(
            "unusable: cpu of origin, over time, that is free and not on offer to the side that waits (where none or "
            "both wait: on offer to neither).",
            "shared offers what is free to both: it leaves nothing unused and sells units twice. static halves origin.",
            "A day is compressed to the play's length; settle time is 1 s, Koordinator's times are divided by 60. "
            "Moves of the boundary take the same seconds as in a real day, so they weigh far more here.",
        ),
    )


def _play(mode: Mode, program: Program | None, seconds: float, seed: int) -> Summary:
    options = Options(seed=seed, duration_seconds=seconds, console=Console(quiet=True), mode=mode, program=program)

    async def play(lab: Lab) -> Summary:
        async with RealBackend(lab) as backend:
            return await perform(backend, options, began_at=time.monotonic())

    with Lab(users=lab_users(), yarn_options=yarn_options()) as lab:
        return asyncio.run(play(lab))


def _figures(summary: Summary) -> dict[str, float]:
    return {
        "unusable_percent": summary.unusable_percent,
        "pod_wait_seconds": summary.pod_wait_seconds or 0.0,
        "container_wait_seconds": summary.container_wait_seconds or 0.0,
        "pods_bound": summary.pods_bound,
        "containers_started": summary.containers_started,
        "oversold_samples": summary.oversold_samples,
        "excess_after_fall_samples": summary.excess_after_fall_samples,
        "samples": summary.samples,
    }


def main(
    seconds: Annotated[
        float, typer.Option(help="Length of the played day; a move takes the same seconds in each.")
    ] = DAY_SECONDS,
    seed: Annotated[int, typer.Option(help="Same seed, same day.")] = 3,
) -> None:
    """Measure and write the result."""
    results.run(NAME, lambda: measure(seconds, seed, Progress()), aims=AIMS)


if __name__ == "__main__":
    typer.run(main)

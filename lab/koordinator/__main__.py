# SPDX-License-Identifier: Apache-2.0
"""Run the stand-in as a process: `python -m lab.koordinator --kubeconfig FILE --config FILE`.

Plays the configured load on every Node it finds until SIGINT or SIGTERM; each publication is one log line.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from pathlib import Path

from lab.errors import LabError
from lab.koordinator.api import read_kubeconfig
from lab.koordinator.configuration import LoadSettings, StandInSettings, read_settings
from lab.koordinator.publication import capacity
from lab.koordinator.stand_in import Pace, StandIn
from lab.load.day import DAY_SECONDS, OnlineDay
from lab.load.trace import read_csv

_log = logging.getLogger("lab.koordinator")


def main() -> int:
    """Parse, run, give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab.koordinator", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--config", type=Path, required=True)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    try:
        settings = read_settings(arguments.config)
        asyncio.run(_run(arguments.kubeconfig, settings))
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


async def _run(kubeconfig: Path, settings: StandInSettings) -> None:
    stop = asyncio.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signal_number, stop.set)
    pace = Pace(
        time_scale=settings.time_scale,
        report_interval_seconds=settings.report_interval_seconds,
        report_at_once=settings.report_at_once,
    )
    stand_in = StandIn(read_kubeconfig(kubeconfig), strategy=settings.strategy.to_strategy(), pace=pace)
    async with stand_in:
        play = asyncio.create_task(_play(stand_in, settings.load))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait((play, stopped), return_when=asyncio.FIRST_COMPLETED)
        play.cancel()
        stopped.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await play


async def _play(stand_in: StandIn, load: LoadSettings) -> None:
    if load.trace is None:
        await _play_day(stand_in, load)
    else:
        await _play_trace(stand_in, load.trace)
    await asyncio.Event().wait()


async def _play_day(stand_in: StandIn, load: LoadSettings) -> None:
    _log.info("playing a day of load seed=%d day_seconds=%g", load.seed, load.day_seconds)
    loop, day = asyncio.get_running_loop(), OnlineDay(seed=load.seed)
    started = loop.time()
    while True:
        second = (loop.time() - started) / load.day_seconds * DAY_SECONDS
        for name, node in list(stand_in.nodes.items()):
            used = day.load(name, capacity(node), second)
            stand_in.set_load(name, used.cpu_milli, used.memory_bytes)
        # Nodes that join are met soon, however slow the steps are.
        await asyncio.sleep(min(load.step_seconds, 1.0) if not stand_in.nodes else load.step_seconds)


async def _play_trace(stand_in: StandIn, path: Path) -> None:
    trace = read_csv(path)
    _log.info("playing a trace file=%s steps=%d", path, len(trace.steps))
    loop = asyncio.get_running_loop()
    started = loop.time()
    for step in trace.steps:
        await asyncio.sleep(max(started + step.at_seconds - loop.time(), 0))
        stand_in.set_load(step.node, step.load.cpu_milli, step.load.memory_bytes)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Run a fleet from the command line until a time has passed or Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import resource
import time

from lab.fleet.fleet import Fleet, FleetOptions
from yarn_copilot.hadoop.model import Resource


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m lab.fleet", description="Play NodeManagers for a ResourceManager.")
    parser.add_argument("--tracker", required=True, metavar="HOST:PORT", help="resource-tracker address")
    parser.add_argument("--nodes", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long to run (until Ctrl-C)")
    parser.add_argument("--memory-mib", type=int, default=8192, help="memory of a node, MiB (8192)")
    parser.add_argument("--vcores", type=int, default=8, help="vcores of a node (8)")
    parser.add_argument("--heartbeat-seconds", type=float, default=1.0, help="time between reports of a node (1)")
    parser.add_argument("--host-format", default="", help="host names, e.g. nm-{:05d} (addresses from 10.64.0.1 on)")
    arguments = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> None:
    options = FleetOptions(
        resource=Resource(arguments.memory_mib, arguments.vcores),
        heartbeat_seconds=arguments.heartbeat_seconds,
        host_format=arguments.host_format,
    )
    end = time.monotonic() + arguments.seconds
    async with Fleet(arguments.tracker, arguments.nodes, options=options) as fleet:
        _say(f"{len(fleet.nodes)} nodes registered in {fleet.statistics.registered_seconds:.2f} s")
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 5.0))
            counts = fleet.statistics
            usage = resource.getrusage(resource.RUSAGE_SELF)
            _say(
                f"heartbeats={counts.heartbeats} resyncs={counts.resyncs} shutdowns={counts.shutdowns} "
                f"errors={counts.errors} adoptions={sum(node.adoptions for node in fleet.nodes)} "
                f"cpu_seconds={usage.ru_utime + usage.ru_stime:.1f} max_rss_mib={usage.ru_maxrss // 1024}"
            )


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()

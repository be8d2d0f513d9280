# SPDX-License-Identifier: Apache-2.0
"""Play the NodeManagers of a benchmark and say when each adopted its newest resource."""

from __future__ import annotations

import argparse
import asyncio

from benchmarks.workers.serving import JsonObject, serve
from lab.fleet import Fleet, FleetOptions
from yarn_copilot.hadoop.model import Resource


async def _main(arguments: argparse.Namespace) -> None:
    options = FleetOptions(resource=Resource(arguments.memory_mib, arguments.vcores), heartbeat_seconds=1.0)
    async with Fleet(arguments.tracker, arguments.nodes, options=options) as fleet:

        async def describe() -> JsonObject:
            return {
                "registered_seconds": fleet.statistics.registered_seconds,
                "node_ids": [str(node.node_id) for node in fleet.nodes],
                "errors": fleet.statistics.errors,
            }

        async def adoptions() -> JsonObject:
            return {
                "adopted": {
                    str(node.node_id): [node.adopted_at, node.resource.memory_mib, node.resource.vcores]
                    for node in fleet.nodes
                    if node.adopted_at is not None
                }
            }

        await serve({"describe": describe, "adoptions": adoptions})


if __name__ == "__main__":
    _parser = argparse.ArgumentParser()
    _parser.add_argument("--tracker", required=True)
    _parser.add_argument("--nodes", type=int, required=True)
    _parser.add_argument("--memory-mib", type=int, required=True)
    _parser.add_argument("--vcores", type=int, required=True)
    asyncio.run(_main(_parser.parse_args()))

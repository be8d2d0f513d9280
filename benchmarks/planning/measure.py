# SPDX-License-Identifier: Apache-2.0
"""Measure cycles of the planner and of demand with the controller's own parts, in processor time of one core."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from batch_resources.keys import BATCH_CPU, BATCH_MEMORY
from benchmarks import machine
from benchmarks.planning.world import CORES, GIB, World, pod_body
from benchmarks.results import Result
from benchmarks.samples import percentiles
from lab.processes.progress import Progress
from yarn_copilot.cli.run import COLLECTOR_THRESHOLDS
from yarn_copilot.hadoop.model import Resource

NAME: Final = "planning"
AIMS: Final = {
    "one_percent_cycle_p99_seconds": 0.05,
    "full_cycle_p50_seconds": 1.0,
    "nodes_planned_by_an_equal_poll": 0.0,
}
NOTES: Final = (
    "seconds of processor time on one core, without servers: views, book, planner, demand and hand-over to the writers",
    "`wall` is the time that passed meanwhile; on a loaded machine it tells about the machine",
    "mode strict; each node has one NodeManager and batch pods; a change is another origin of one node in a hundred",
    "pods that wait come in 20 kinds; each kind asks for a label that a quarter of the nodes have",
    "sentences of `explain` are made when somebody asks, so no cycle pays for them",
)
_PENDING: Final = 2000
_KINDS: Final = 20
_FULL_CYCLES: Final = 5
_SMALL_CYCLES: Final = 40


async def measure(nodes: int, pods_per_node: int, progress: Progress) -> Result:
    """Fill a controller and measure.

    Args:
        nodes: how many, at least 100.
        pods_per_node: batch pods that are bound to each.
        progress: told what happens.
    """
    started_on = machine.describe_machine()
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # what is told of each node belongs to the tellers, not to planning
    try:
        figures = await _figures(nodes, pods_per_node, progress)
    finally:
        logging.disable(before)
    return Result.of_now(NAME, figures, started_on=started_on, hadoop_version="none", notes=NOTES)


async def _figures(nodes: int, pods_per_node: int, progress: Progress) -> dict[str, float]:
    progress.say(f"filling a controller with {nodes} nodes")
    began_at = time.process_time()
    world = World(nodes=nodes, pods_per_node=pods_per_node)
    figures: dict[str, float] = {
        "nodes": nodes,
        "pods": nodes * pods_per_node,
        "intake_seconds": time.process_time() - began_at,
    }
    await world.controller.planning.cycle()
    # As the program does: what lives on is out of the collector's sight, and it looks less often.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    progress.say("planning all nodes, then one in a hundred")
    full = [await _full(world) for _ in range(_FULL_CYCLES)]
    figures |= percentiles("full_cycle", [cpu for cpu, _ in full])
    figures |= percentiles("full_cycle_wall", [wall for _, wall in full])
    small = [await _small(world, step) for step in range(_SMALL_CYCLES)]
    figures |= percentiles("one_percent_cycle", small)
    figures["nodes_planned_by_an_equal_poll"] = await _equal_poll(world)
    progress.say(f"letting {_PENDING} pods wait")
    figures |= await _demand(world)
    figures["explain_seconds"] = _explain(world)
    return figures


async def _timed(cycle: Callable[[], Awaitable[None]]) -> float:
    began_at = time.process_time()
    await cycle()
    return time.process_time() - began_at


async def _full(world: World) -> tuple[float, float]:
    """Give processor time and wall time of planning every node."""
    world.mark_all()
    began_at = time.perf_counter()
    cpu = await _timed(world.controller.planning.cycle)
    return cpu, time.perf_counter() - began_at


async def _small(world: World, step: int) -> float:
    for index in range(step % 100, world.count, 100):
        world.put_node(index, origin_cores=CORES - 1 - step % 4)
    return await _timed(world.controller.planning.cycle)


async def _equal_poll(world: World) -> float:
    """Count the nodes that a read of the node list and of the queues marks although nothing changed."""
    await world.controller.planning.cycle()
    world.report(Resource(1024, 1))
    # With few nodes all of the above takes less than a heartbeat, and use is proven by reads that are one apart.
    await asyncio.sleep(1.1 * world.controller.book.heartbeat_seconds("default"))
    world.report(Resource(1024, 1))
    await world.controller.planning.cycle()
    world.report(Resource(1024, 1))
    await world.controller.clusters["default"].queues.read_once()
    await world.controller.planning.cycle()
    world.report(Resource(1024, 1))
    await world.controller.clusters["default"].queues.read_once()
    return float(len(world.controller.dirty.take()))


async def _demand(world: World) -> dict[str, float]:
    """Let pods arrive, be served, and go."""
    began_at = time.process_time()
    for number in range(_PENDING):
        kind = number % _KINDS
        requests = {BATCH_CPU: str(1000 + 100 * kind), BATCH_MEMORY: str(2 * GIB)}
        selector = {"topology.kubernetes.io/zone": f"zone-{kind % 4}"}
        name = f"waits-{number:05}"
        world.put_pod(name, pod_body(name, requests=requests, nodeSelector=selector))
    intake = time.process_time() - began_at
    serving = await _timed(world.controller.demand.cycle)
    marked = await _timed(world.controller.planning.cycle)
    assignment = world.controller.demand.assignment
    unserved = assignment.unserved()
    following = await _timed(world.controller.demand.cycle)
    return {
        "waiting_pods": _PENDING,
        "waiting_pods_intake_seconds": intake,
        "waiting_pods_served_seconds": serving,
        "waiting_pods_unserved": unserved,
        "nodes_served_planned_seconds": marked,
        "demand_at_rest_seconds": following,
    }


def _explain(world: World) -> float:
    began_at = time.process_time()
    for index in range(0, world.count, max(world.count // 100, 1)):
        plan = world.controller.book.memories[f"node-{index:05}"].plan
        assert plan is not None  # noqa: S101  # every node was planned
        world.explain(f"node-{index:05}")
    return (time.process_time() - began_at) / 100

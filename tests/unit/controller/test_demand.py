# SPDX-License-Identifier: Apache-2.0
"""Demand moves the boundary of mode strict: who waits gets what is free, a large pod one node, no other is planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.controller.strict_world import StrictWorld
from tests.unit.controller.world import GIB
from yarn_copilot.hadoop.errors import ConnectionLostError
from yarn_copilot.hadoop.model import Resource

EVEN: dict[str, Any] = {
    "yarn_weight": 1,
    "kubernetes_weight": 1,
    "kubernetes_minimum_cpu_milli": 1000,
    "kubernetes_minimum_memory_bytes": GIB,
    "yarn_quiet_seconds": 0,
}
START = 25.0
"""Seconds until a new leader has moved its first boundary: earlier messages die, binds land."""
ALL_OF_YARN = Resource(63 * 1024, 19)
HALF = Resource(32 * 1024, 10)
MORE = Resource(4096, 4)


def _world(nodes: int = 1, **strict: Any) -> StrictWorld:
    world = StrictWorld(strict={**EVEN, **strict})
    for number in range(nodes):
        world.manager(number + 1)
    return world


def _pending(world: StrictWorld, name: str, cores: int, **spec: Any) -> None:
    world.waiting_pod(name, cpu=cores * 1000, memory=cores * GIB, **spec)


async def _capacities(world: StrictWorld) -> list[int]:
    return [report.capability.vcores for report in world.rm.reports.values()]


async def test_divides_by_weight_while_nobody_waits() -> None:
    world = _world()
    async with world:
        await world.advance(START)
        assert await _capacities(world) == [10]
        sentences = world.reader.explain("node-1") or []
        assert any("nobody waits" in sentence.lower() for sentence in sentences)


async def test_yarn_gets_what_is_free_while_only_it_waits() -> None:
    world = _world()
    world.rm.pending = MORE
    async with world:
        await world.advance(START)
        assert world.rm.capacity(next(iter(world.rm.reports))) == ALL_OF_YARN
        sentences = world.reader.explain("node-1") or []
        assert any("applications wait" in sentence.lower() for sentence in sentences)


async def test_pods_get_what_is_free_while_only_they_wait() -> None:
    world = _world()
    async with world:
        await world.advance(START)
        _pending(world, "large", 15)
        await world.advance(START)
        assert await _capacities(world) == [1]
        assert world.allocatable_cpu() == 19_000


async def test_a_large_pod_moves_the_boundary_of_one_node_where_yarn_waits_too() -> None:
    world = _world(3)
    world.rm.pending = MORE
    async with world:
        await world.advance(START)
        assert await _capacities(world) == [19, 19, 19]
        _pending(world, "large", 15)
        await world.advance(START)
        assert await _capacities(world) == [5, 19, 19]
        assert world.allocatable_cpu("node-1") >= 15_000
        told = " ".join(world.reader.explain("node-1") or [])
        assert "to be served here: 1, which need 15000 milli-cores" in told
        assert "batch/large" in told
        view = world.reader.node("node-1")
        assert view is not None
        assert view.boundary is not None
        assert (view.boundary.why_cpu, view.boundary.yarn_waits) == ("pods_need_more", True)
        world.bind("large", "node-1")
        await world.advance(START)
        assert await _capacities(world) == [4, 19, 19]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"nodeSelector": {"disk": "ssd"}}, id="a label that no node has"),
        pytest.param({"schedulingGates": [{"name": "quota"}]}, id="a gate"),
    ],
)
async def test_a_pod_that_no_node_could_take_moves_nothing(spec: Mapping[str, Any]) -> None:
    world = _world()
    world.rm.pending = MORE
    async with world:
        _pending(world, "pod", 15, **spec)
        await world.advance(START)
        assert await _capacities(world) == [19]


async def test_a_cordoned_node_serves_no_pod() -> None:
    world = _world(2)
    world.rm.pending = MORE
    body = world.kube.objects["nodes"]["node-1"]
    world.kube.put("nodes", "node-1", {**body, "spec": {"unschedulable": True}})
    async with world:
        _pending(world, "large", 15)
        await world.advance(START)
        assert await _capacities(world) == [19, 5]


async def test_demand_that_cannot_be_read_is_not_none() -> None:
    world = _world()
    world.rm.pending = MORE
    async with world:
        await world.advance(START)
        assert await _capacities(world) == [19]
        world.rm.queue_errors.extend([ConnectionLostError("gone")] * 100)
        await world.advance(START)
        assert await _capacities(world) == [10]
        sentences = world.reader.explain("node-1") or []
        assert any("not known" in sentence for sentence in sentences)


async def test_why_demand_is_not_known_is_told_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    world = _world()
    async with world:
        await world.advance(START)
        world.rm.queue_errors.extend([ConnectionLostError("gone")] * 6)
        await world.advance(START)
        assert not world.rm.queue_errors, "the queues were read again"
    told = [record.getMessage() for record in caplog.records if record.getMessage().startswith("Queues ")]
    assert len(told) == 2
    assert "gone" in told[0]
    assert "configured weights" in told[0]
    assert told[1] == "Queues are read again"


async def test_one_read_of_the_queues_that_fails_moves_nothing() -> None:
    world = _world()
    world.rm.pending = MORE
    async with world:
        await world.advance(START)
        world.rm.queue_errors.extend([ConnectionLostError("gone")] * 2)
        await world.advance(START)
        assert await _capacities(world) == [19]


async def test_yarn_counts_as_waiting_until_it_has_been_quiet() -> None:
    world = _world(yarn_quiet_seconds=30)
    world.rm.pending = MORE
    async with world:
        await world.advance(START)
        world.rm.pending = Resource(0, 0)
        await world.advance(20)
        assert await _capacities(world) == [19]
        await world.advance(START)
        assert await _capacities(world) == [10]


async def test_a_read_of_the_queues_plans_no_node_whose_answer_stays() -> None:
    world = _world(3)
    world.rm.pending = MORE
    async with world:
        await world.advance(START)
        planned = {name: memory.planned_at for name, memory in world.controller.book.memories.items()}
        world.rm.pending = Resource(8192, 8)
        await world.advance(10)
        _pending(world, "small", 1)
        await world.advance(5)
        after = {name: memory.planned_at for name, memory in world.controller.book.memories.items()}
        assert [name for name in after if after[name] != planned[name]] == ["node-1"]


async def test_tells_demand_in_metrics() -> None:
    world = _world()
    world.rm.pending = MORE
    async with world:
        _pending(world, "small", 2)
        _pending(world, "huge", 300)
        await world.advance(START)
        text = world.metrics.render().decode()
        assert 'yarn_copilot_demand_yarn_pending_vcores{cluster="default",partition=""} 4.0' in text
        assert "yarn_copilot_demand_pods_waiting 2.0" in text
        assert "yarn_copilot_demand_pods_unserved 1.0" in text
        assert "yarn_copilot_demand_pods_pending_cpu_cores 302.0" in text


async def test_forces_a_publication_only_where_that_was_chosen_and_the_annotation_is_there() -> None:
    ratio = "node.koordinator.sh/cpu-normalization-ratio"
    for chosen in (True, False):
        world = _world(force_publication=chosen)
        world.publishes = False
        body = world.kube.objects["nodes"]["node-1"]
        body["metadata"]["annotations"][ratio] = "1.00"
        async with world:
            await world.advance(5)
            assert (world.kube.annotation("node-1", ratio) is None) is chosen
            sentences = " ".join(world.reader.explain("node-1") or [])
            assert ("cannot be forced" in sentences) is chosen

# SPDX-License-Identifier: Apache-2.0
"""What lingers on a node is claimed and not offered; agents that hang or lie touch their own node only."""

from __future__ import annotations

from typing import Any

import pytest

from batch_resources.resources import ZERO_BATCH, BatchResources
from tests.unit.controller.outside import FakeAgent
from tests.unit.controller.strict_world import StrictWorld
from tests.unit.controller.world import GIB, World, origin_text, settings
from yarn_copilot.config.settings import Settings
from yarn_copilot.hadoop.errors import ConnectError
from yarn_copilot.hadoop.model import NodeId, Resource
from yarn_copilot.node_agent.errors import NodeAgentConnectionError, NodeAgentRefusedError

ADDRESS = "10.0.0.7:9443"
MODES = pytest.mark.parametrize("mode", ["shared", "strict"])
LINGERING = BatchResources(cpu_milli=2000, memory_bytes=3 * GIB)
USED = Resource(12 * 1024, 12)
FORCED: dict[str, Any] = {
    "capacity": {
        "mode": "shared",
        "growth_window_seconds": 0,
        "giving_way": {
            "grace_seconds": 20,
            "preemption_timeout_seconds": 8,
            "forced": True,
            "forced_after_seconds": 5,
        },
    },
    "node_agents": {"tls": True, "token_file": "/token", "interval_seconds": 2},
}


def world_of(mode: str) -> World:
    return StrictWorld() if mode == "strict" else World()


def with_agent(world: World, **manager: Any) -> tuple[NodeId, FakeAgent]:
    """Add a NodeManager whose pod names the port of an agent."""
    node_id = world.manager(**manager)
    world.pod("nm-1", manager=True, ip="10.0.0.7", agent_port=9443)
    return node_id, world.agent(ADDRESS)


@MODES
async def test_what_lingers_is_claimed_and_not_offered(mode: str) -> None:
    async with world_of(mode) as world:
        node_id, agent = with_agent(world, used=Resource(4096, 4), capacity=Resource(4096, 4))
        await world.advance(60)
        before = world.rm.capacity(node_id)
        assert world.claim() is not None

        agent.lingering = LINGERING
        await world.advance(30)

        after = world.rm.capacity(node_id)
        assert after == Resource(before.memory_mib - 3072, before.vcores - 2)
        agent.lingering = ZERO_BATCH
        await world.advance(90)
        assert world.rm.capacity(node_id) == before


async def test_the_claim_covers_what_lingers_until_it_is_gone() -> None:
    async with world_of("shared") as world:
        _, agent = with_agent(world, used=Resource(4096, 4))
        agent.lingering = LINGERING
        await world.advance(30)
        assert world.claim() == (6000, 4096 + 3072)

        agent.lingering = ZERO_BATCH
        await world.advance(15)
        assert world.claim() == (4000, 4096)


@MODES
async def test_a_silent_agent_keeps_its_last_word_for_a_while_and_no_longer(mode: str) -> None:
    async with world_of(mode) as world:
        node_id, agent = with_agent(world, used=Resource(4096, 4))
        agent.lingering = LINGERING
        await world.advance(60)
        held = world.rm.capacity(node_id)
        agent.error = NodeAgentConnectionError("no answer within 2 s")
        await world.advance(100)
        assert world.rm.capacity(node_id) == held
        assert "NodeAgentSilent" in world.events.reasons("node-1")
        view = world.reader.node("node-1")
        assert view is not None
        assert view.node_managers[0].agent is not None
        assert view.node_managers[0].agent.error

        await world.advance(world.settings.yarn.lost_hold_seconds + 60)
        assert world.rm.capacity(node_id).vcores == held.vcores + 2


async def test_no_claim_falls_before_a_new_controller_knows_what_lingers() -> None:
    async with world_of("shared") as world:
        _, agent = with_agent(world, used=Resource(4096, 4))
        agent.lingering = LINGERING
        await world.advance(30)
        agent.error = NodeAgentConnectionError("no answer within 2 s")

        await world.restart(60)
        assert world.claim() == (6000, 4096 + 3072)

        agent.error, agent.lingering = None, ZERO_BATCH
        await world.advance(120)
        assert world.claim() == (4000, 4096)


@pytest.mark.parametrize(
    "lie", [BatchResources(cpu_milli=-1, memory_bytes=0), BatchResources(cpu_milli=0, memory_bytes=1 << 60)]
)
async def test_an_agent_that_says_what_no_machine_has_is_not_believed(lie: BatchResources) -> None:
    async with world_of("shared") as world:
        _, agent = with_agent(world, used=Resource(4096, 4))
        agent.lingering = LINGERING
        await world.advance(30)
        agent.lingering = lie
        await world.advance(30)

        assert world.claim() == (6000, 4096 + 3072)


async def test_an_agent_that_hangs_does_not_hold_up_the_other_nodes() -> None:
    hanging = settings(node_agents={"parallel": 2, "interval_seconds": 1})
    async with World(hanging) as world:
        _, agent = with_agent(world)
        agent.hangs = 10_000
        world.manager(2)
        world.pod("nm-2", "node-2", manager=True, ip="10.0.0.8", agent_port=9443)
        other = world.agent("10.0.0.8:9443")
        other.lingering = LINGERING
        await world.advance(30)

        view = world.reader.node("node-2")
        assert view is not None
        assert view.node_managers[0].agent is not None
        assert view.node_managers[0].agent.lingering.cpu_milli == 2000


async def test_pods_without_the_port_are_never_asked() -> None:
    async with world_of("shared") as world:
        world.manager(used=Resource(4096, 4))
        world.pod("nm-1", manager=True, ip="10.0.0.7")
        await world.advance(60)

        assert world.agents == {}


def forced_world() -> World:
    return World(Settings.model_validate(FORCED))


async def over(world: World) -> tuple[NodeId, FakeAgent]:
    """Bring a node 4 vcores over origin."""
    node_id, agent = with_agent(world, capacity=Resource(20 * 1024, 20), used=USED)
    agent.running = BatchResources(cpu_milli=12_000, memory_bytes=12 * GIB)
    await world.advance(30)
    world.kube.annotate("node-1", origin=origin_text(8_000, 64 * GIB))
    return node_id, agent


async def test_the_node_is_asked_for_what_the_resource_manager_did_not_free() -> None:
    async with forced_world() as world:
        node_id, agent = await over(world)

        def kill(asked: BatchResources) -> None:
            world.rm.change(node_id, used=Resource(8 * 1024, 8))
            agent.running = BatchResources(cpu_milli=8_000, memory_bytes=8 * GIB)

        agent.on_kill = kill
        await world.advance(32)
        assert agent.kills == [], "the ResourceManager still has time"
        await world.advance(30)

        assert agent.kills == [BatchResources(cpu_milli=4_000, memory_bytes=0)]
        assert "TasksKilledOnNode" in world.events.reasons("node-1")


async def test_a_resource_manager_that_froze_after_the_update_does_not_keep_the_node_over() -> None:
    async with forced_world() as world:
        _, agent = await over(world)
        await world.advance(24)
        world.rm.down = ConnectError("no answer")
        await world.advance(30)

        assert agent.kills
        assert agent.kills[0].cpu_milli == 4_000


async def test_the_node_is_not_asked_when_its_tasks_have_ended_meanwhile() -> None:
    async with forced_world() as world:
        _, agent = await over(world)
        await world.advance(24)
        agent.running = BatchResources(cpu_milli=7_000, memory_bytes=7 * GIB)
        await world.advance(60)

        assert agent.kills == []


async def test_a_refused_ask_is_told_and_repeated_only_after_a_while() -> None:
    async with forced_world() as world:
        _, agent = await over(world)
        agent.error = None
        await world.advance(30)
        refused = NodeAgentRefusedError("401 the bearer token is missing or wrong")

        def refuse(asked: BatchResources) -> None:
            raise refused

        agent.on_kill = refuse
        await world.advance(20)

        assert len(agent.kills) == 1
        assert "TasksNotKilledOnNode" in world.events.reasons("node-1")
        await world.advance(40)
        assert len(agent.kills) == 2


async def test_a_standby_and_a_recovered_origin_ask_for_nothing() -> None:
    async with forced_world() as world:
        _, agent = await over(world)
        await world.advance(30)
        world.kube.annotate("node-1", origin=origin_text(20_000, 64 * GIB))
        await world.advance(60)
        assert agent.kills == []

        world.kube.annotate("node-1", origin=origin_text(8_000, 64 * GIB))
        await world.advance(24)
        world.lead(False)
        await world.advance(60)
        assert agent.kills == []

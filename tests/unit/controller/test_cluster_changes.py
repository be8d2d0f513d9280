# SPDX-License-Identifier: Apache-2.0
"""YARN clusters come, change and go while the controller runs, and no other cluster notices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.controller.outside import FakeResourceManager
from tests.unit.controller.world import GIB, World
from yarn_copilot.controller.clusters import ClusterPort
from yarn_copilot.hadoop.errors import ConnectError, FederationRouterError, HadoopRPCError
from yarn_copilot.hadoop.model import NodeId, Resource


@pytest.fixture(autouse=True)
def no_loop_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Let no loop fail unseen: it would start again and the world would look well."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def port(rm: FakeResourceManager, address: str = "rm:8032") -> ClusterPort:
    return ClusterPort(resource_manager=rm, addresses=(address,), heartbeat_seconds=1.0)


def capacity(rm: FakeResourceManager, node_id: NodeId) -> Resource:
    return rm.reports[node_id].capability


async def test_a_cluster_that_comes_gets_its_nodes_served() -> None:
    async with World(clusters=("a",)) as world:
        first = world.manager(1, cluster="a")
        rm = FakeResourceManager()
        world.rms["b"] = rm
        second = world.manager(2, cluster="b")
        await world.advance(5)
        before = capacity(rm, second)

        await world.controller.set_cluster("b", port(rm))
        await world.advance(10)

        assert capacity(rm, second) != before
        assert capacity(rm, second).memory_mib == 64 * GIB >> 20
        assert capacity(world.rms["a"], first).memory_mib == 64 * GIB >> 20
        assert world.controller.ready
        assert not world.controller.stuck()
        assert {cluster.id for cluster in world.reader.clusters()} == {"a", "b"}


async def test_a_cluster_that_changes_is_read_and_written_at_its_new_place_only() -> None:
    async with World(clusters=("a", "b")) as world:
        node_id = world.manager(1, cluster="a")
        other = world.manager(2, cluster="b")
        await world.advance(10)
        old, new = world.rms["a"], FakeResourceManager()
        new.add("nm-1-a:8041")
        writes_of_b = len(world.rms["b"].batches)

        await world.controller.set_cluster("a", port(new, "new:8032"))
        old.down = ConnectError("gone")
        await world.advance(10)

        assert capacity(new, node_id).memory_mib == 64 * GIB >> 20
        assert world.controller.states["a"].addresses == ("new:8032",)
        assert world.controller.states["a"].reachable
        assert len(world.rms["b"].batches) == writes_of_b
        assert capacity(world.rms["b"], other).memory_mib == 64 * GIB >> 20


async def test_an_unreachable_new_place_is_told_and_keeps_claims() -> None:
    async with World(clusters=("a",)) as world:
        world.manager(1, cluster="a", used=Resource(4096, 4))
        await world.advance(10)
        claim = world.claim("node-1")
        dead = FakeResourceManager()
        dead.down = ConnectError("nobody listens")

        await world.controller.set_cluster("a", port(dead))
        await world.advance(30)

        assert world.claim("node-1") == claim
        assert not world.controller.states["a"].reachable
        assert any("nobody listens" in message for _, _, message in world.events.of_controller)


async def test_a_cluster_that_goes_keeps_what_its_node_managers_used_claimed() -> None:
    async with World(clusters=("a", "b")) as world:
        node_id = world.manager(1, cluster="a", used=Resource(4096, 4))
        other = world.manager(2, cluster="b")
        await world.advance(10)
        claim = world.claim("node-1")
        assert claim is not None
        reads = world.rms["a"].reads

        await world.controller.remove_cluster("a")
        await world.advance(30)

        assert world.claim("node-1") == claim
        assert world.rms["a"].reads == reads
        assert capacity(world.rms["a"], node_id).memory_mib == 64 * GIB >> 20
        assert capacity(world.rms["b"], other).memory_mib == 64 * GIB >> 20
        assert 'cluster="a"' not in world.metrics.render().decode()
        await world.controller.remove_cluster("a")


async def test_a_cluster_that_goes_and_comes_back_is_followed_again() -> None:
    async with World(clusters=("a",)) as world:
        node_id = world.manager(1, cluster="a")
        await world.advance(10)
        await world.controller.remove_cluster("a")
        await world.advance(5)
        world.rms["a"].change(node_id, capability=Resource(1024, 1))

        await world.controller.set_cluster("a", port(world.rms["a"]))
        await world.advance(10)

        assert capacity(world.rms["a"], node_id).memory_mib == 64 * GIB >> 20


@pytest.mark.parametrize(
    ("problem", "seconds"),
    [
        pytest.param(ConnectError("rm: Name or service not known"), 0.5, id="a name without an address"),
        pytest.param(FederationRouterError("yarn-copilot", "a Router answers"), 5.5, id="a Router in its place"),
    ],
)
async def test_what_is_wrong_behind_an_address_is_looked_at_again(problem: HadoopRPCError, seconds: float) -> None:
    world = World()
    world.manager()
    world.rm.down = problem
    async with world:
        await world.advance(60)
        assert not world.controller.states["default"].reachable
        world.rm.down = None
        await world.advance(seconds)
        assert world.controller.states["default"].reachable

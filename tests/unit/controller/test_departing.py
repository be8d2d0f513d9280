# SPDX-License-Identifier: Apache-2.0
"""Test NodeManagers that come, go, move and share: who is who, and when a claim may go."""

from __future__ import annotations

import pytest

from tests.unit.controller.outside import ZERO
from tests.unit.controller.world import World, origin_text, settings, third_text
from yarn_copilot.hadoop.errors import ConnectError
from yarn_copilot.hadoop.model import NodeState, Resource

USED = Resource(8192, 8)
CLAIM = (8000, 8192)
FLOOR = (1000, 1024)
NODE_ID = "yarn.hadoop.apache.org/node-id"
HOST = settings(node_managers={"host_node_selector": "yarn=host"})


async def test_the_claim_of_a_pod_that_is_gone_stays_while_anything_runs_and_goes_with_proof() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.kube.delete("pods", "yarn/nm-1")
        await world.advance(60)
        assert world.claim() == CLAIM
        world.rm.change(node_id, used=ZERO)
        await world.advance(4)
        assert world.claim() is None
        assert world.controller.book.memory("node-1") is None
        assert not world.controller.book.residents.holders


async def test_a_lost_node_manager_without_a_pod_is_believed_to_hold_its_use_for_the_hold() -> None:
    world = World(settings(yarn={"lost_hold_seconds": 100}))
    node_id = world.manager(used=USED)
    async with world:
        world.kube.delete("pods", "yarn/nm-1")
        world.rm.change(node_id, state=NodeState.LOST, used=ZERO)
        await world.advance(95)
        assert world.claim() == CLAIM
        await world.advance(10)
        assert world.claim() is None


@pytest.mark.parametrize("state", [NodeState.SHUTDOWN, NodeState.DECOMMISSIONED])
async def test_a_node_manager_that_signed_off_is_released_within_seconds(state: NodeState) -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.kube.delete("pods", "yarn/nm-1")
        await world.advance(1)
        world.rm.change(node_id, state=state, used=ZERO)
        await world.advance(5)
        assert world.claim() is None


@pytest.mark.parametrize("state", [NodeState.UNHEALTHY, NodeState.LOST])
async def test_use_stays_claimed_while_its_node_manager_does_not_run(state: NodeState) -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        world.rm.change(node_id, state=state, used=ZERO)
        await world.advance(500)
        assert world.claim() == CLAIM
        assert world.events.reasons("node-1").count("NodeManagerNotRunning") == (state is NodeState.LOST)


async def test_a_hold_that_ends_while_the_resource_manager_is_down_is_noticed_when_it_is_back() -> None:
    world = World(settings(yarn={"lost_hold_seconds": 100}))
    node_id = world.manager(used=USED)
    async with world:
        world.kube.delete("pods", "yarn/nm-1")
        world.rm.change(node_id, state=NodeState.LOST, used=ZERO)
        await world.advance(50)
        world.rm.down = ConnectError("refused")
        await world.advance(100)
        assert world.claim() == CLAIM
        world.rm.down = None
        await world.advance(10)
        assert world.claim() is None


async def test_a_foreign_third_party_survives_the_release() -> None:
    world = World()
    world.node(third=third_text(1000, 1 << 30, name="other"))
    world.manager()
    async with world:
        world.kube.delete("pods", "yarn/nm-1")
        await world.advance(5)
        assert world.claim() is None
        assert '"other"' in (world.kube.annotation("node-1") or "")


async def test_an_entry_found_on_a_node_without_a_node_manager_is_released_after_the_hold() -> None:
    world = World(settings(yarn={"lost_hold_seconds": 100}))
    world.node(third=third_text(3000, 3 << 30))
    async with world:
        await world.advance(90)
        assert world.claim() == (3000, 3072)
        await world.advance(15)
        assert world.claim() is None


async def test_an_entry_without_a_node_manager_that_somebody_writes_again_is_left_to_them() -> None:
    world = World(settings(yarn={"lost_hold_seconds": 100}))
    world.node(third=third_text(5000, 1 << 30))
    async with world:
        await world.advance(120)
        assert world.claim() is None
        patches = len(world.kube.patches)

        world.kube.annotate("node-1", third=third_text(6000, 1 << 30))
        await world.advance(3000)

        assert world.claim() == (6000, 1024)
        assert len(world.kube.patches) == patches
        assert "ForeignWriterOfOurEntry" in world.events.reasons("node-1")


async def test_a_node_manager_that_comes_back_under_its_name_keeps_its_memory() -> None:
    world = World()
    world.manager(used=USED)
    async with world:
        manager = next(iter(world.memory().managers.values()))
        world.kube.delete("pods", "yarn/nm-1")
        await world.advance(1)
        world.pod("nm-1", manager=True)
        await world.advance(1)
        assert list(world.memory().managers.values()) == [manager]
        assert world.claim() == CLAIM


async def test_a_restart_on_a_new_port_claims_both_until_the_old_one_is_over() -> None:
    world = World(settings(yarn={"lost_hold_seconds": 30}))
    old = world.manager(used=USED)
    async with world:
        world.rm.add("nm-1:9000", used=Resource(1024, 1))
        world.rm.change(old, state=NodeState.LOST, used=ZERO)
        await world.advance(3)
        assert world.claim() == (9000, 9216)
        assert world.rm.capacity(world.rm.add("probe:1")).vcores == 1
        await world.advance(40)
        assert world.claim() == FLOOR
        assert [key.node_id for key in world.memory().managers] == ["nm-1:9000"]


async def test_a_node_manager_that_moves_to_another_node_is_followed_and_the_old_claim_ends() -> None:
    world = World(settings(yarn={"lost_hold_seconds": 100}))
    node_id = world.manager(1, used=USED)
    world.node("node-2", origin=(12_000, 16 << 30))
    async with world:
        world.kube.delete("pods", "yarn/nm-1")
        world.pod("nm-1", "node-2", manager=True)
        world.rm.change(node_id, used=Resource(2048, 2))
        await world.advance(3)
        assert world.claim("node-2") == (2000, 2048)
        assert world.claim("node-1") == CLAIM
        assert world.rm.capacity(node_id) == Resource(16 * 1024, 12)
        # Matching the old node again must not bring the NodeManager back to it.
        world.rm.add("late:8041")
        world.kube.annotate("node-1", **{"yarn.hadoop.apache.org/cluster-id": "default"})
        world.rm.change(node_id, used=Resource(4096, 4))
        await world.advance(3)
        assert world.claim("node-2") == (4000, 4096)
        await world.advance(100)
        assert world.claim("node-1") is None
        assert world.controller.book.memory("node-1") is None
        assert world.claim("node-2") == (4000, 4096)


async def test_two_nodes_that_name_the_same_node_id_do_not_take_it_from_each_other() -> None:
    world = World()
    node_id = world.rm.add("nm:8041", used=USED)
    for index, cpu in ((1, 10_000), (2, 20_000)):
        world.node(f"node-{index}", origin=(cpu, 64 << 30))
        world.pod(f"a-{index}", f"node-{index}", manager=True, annotations={NODE_ID: "nm:8041"})
    async with world:
        capacity = world.rm.capacity(node_id)
        calls = len(world.rm.batches)
        for index in range(5):
            world.rm.add(f"other-{index}:1")
            await world.advance(2)
        assert world.rm.capacity(node_id) == capacity
        assert len(world.rm.batches) == calls
        assert "NodeManagerNotMatched" in world.events.reasons("node-1") + world.events.reasons("node-2")


async def test_an_unannotated_pod_replaces_the_annotated_one_of_its_cluster() -> None:
    world = World()
    world.node()
    world.rm.add("nm-host:8041", used=USED)
    world.pod("old", manager=True, annotations={NODE_ID: "nm-host:8041"}, phase="Running")
    async with world:
        assert world.claim() == CLAIM
        world.pod("new", manager=True, phase="Pending", created="2026-02-01T00:00:00Z")
        await world.advance(2)
        assert world.claim() == CLAIM
        assert len(world.memory().managers) == 1


async def test_of_two_pods_the_running_one_counts_and_terminal_ones_never_do() -> None:
    world = World()
    world.node()
    world.rm.add("nm-a:8041", used=USED)
    world.rm.add("nm-b:8041", used=Resource(1024, 1))
    world.pod("nm-a", manager=True, phase="Running")
    world.pod("nm-b", manager=True, phase="Failed", created="2027-01-01T00:00:00Z")
    async with world:
        assert [key.node_id for key in world.memory().managers] == ["nm-a:8041"]


async def test_a_host_daemon_is_found_by_the_nodes_name_and_released_with_its_label() -> None:
    world = World(HOST)
    world.node("worker-1", labels={"yarn": "host"})
    node_id = world.rm.add("worker-1.example.com:8041", used=USED)
    async with world:
        assert world.rm.capacity(node_id).vcores == 20
        assert world.claim("worker-1") == CLAIM
        body = world.kube.objects["nodes"]["worker-1"]
        body["metadata"]["labels"] = {}
        world.kube.put("nodes", "worker-1", body)
        calls = len(world.rm.batches)
        world.kube.annotate("worker-1", origin=origin_text(9000, "8Gi"))
        await world.advance(5)
        assert len(world.rm.batches) == calls
        assert world.claim("worker-1") == CLAIM
        world.rm.change(node_id, used=ZERO)
        await world.advance(5)
        assert world.claim("worker-1") is None


async def test_a_host_without_a_node_manager_is_not_ours() -> None:
    world = World(HOST)
    world.node("worker-1", labels={"yarn": "host"})
    async with world:
        await world.advance(5)
        assert world.kube.patches == []
        assert world.controller.book.memory("worker-1") is None or not world.memory("worker-1").managers


async def test_a_node_recreated_under_its_name_starts_anew_with_the_use_that_the_resource_manager_shows() -> None:
    world = World()
    world.manager(used=USED)
    async with world:
        memory = world.memory()
        world.kube.delete("nodes", "node-1")
        await world.advance(1)
        assert world.controller.book.memory("node-1") is None
        world.node()
        patches = len(world.kube.patches)
        await world.advance(3)
        assert world.memory() is not memory
        assert world.claim() == CLAIM
        assert len(world.kube.patches) == patches + 1


async def test_a_node_replaced_between_two_views_starts_anew() -> None:
    world = World()
    world.manager(used=USED)
    async with world:
        memory = world.memory()
        del world.kube.objects["nodes"]["node-1"]
        world.node()
        await world.advance(3)
        assert world.memory() is not memory
        assert world.claim() == CLAIM
        assert "ForeignWriterOfOurEntry" not in world.events.reasons("node-1")


async def test_a_deleted_node_leaves_nothing_behind() -> None:
    world = World()
    world.manager(used=USED)
    async with world:
        world.kube.delete("pods", "yarn/nm-1")
        world.kube.delete("nodes", "node-1")
        world.kube.delete("nodemetrics", "node-1")
        calls = len(world.rm.batches)
        await world.advance(5)
        controller = world.controller
        assert not controller.book.memories
        assert not controller.book.residents.holders
        assert not controller.notices.counts()
        assert controller.pods.requested("node-1").cpu_milli == 0  # type: ignore[union-attr]  # nothing is malformed
        assert len(world.rm.batches) == calls


async def test_a_pod_without_a_registration_claims_the_floor_and_says_so() -> None:
    world = World()
    world.node()
    world.pod("nm-1", manager=True)
    async with world:
        assert world.claim() == FLOOR
        assert world.events.reasons("node-1") == ["NodeManagerNotMatched"]
        node_id = world.rm.add("nm-1:8041")
        await world.advance(3)
        assert world.rm.capacity(node_id).vcores == 20
        assert not world.controller.notices.of("node-1")


async def test_a_former_claim_falls_to_the_floor_when_its_pod_stays_unregistered_for_the_hold() -> None:
    world = World(settings(yarn={"lost_hold_seconds": 100}))
    world.node(third=third_text(8000, 8 << 30))
    world.pod("nm-1", manager=True)
    async with world:
        await world.advance(50)
        world.rm.down = ConnectError("refused")
        await world.advance(100)
        world.rm.down = None
        await world.advance(80)
        assert world.claim() == CLAIM
        await world.advance(40)
        assert world.claim() == FLOOR


async def test_a_pod_of_a_cluster_that_is_not_configured_is_told_with_the_ones_that_are() -> None:
    world = World(clusters=("blue", "green"))
    world.node()
    world.pod("nm-1", manager=True, annotations={"yarn.hadoop.apache.org/cluster-id": "gren"})
    async with world:
        ((_, kind, reason, message),) = world.events.of_nodes
        assert (kind, reason) == ("Warning", "YarnClusterUnknown")
        assert "'gren'" in message
        assert "blue, green" in message
        assert any("no YARN cluster of that id" in line for line in world.reader.explain("node-1") or [])
        node_id = world.rms["green"].add("nm-1:8041")
        world.pod("nm-1", manager=True, annotations={"yarn.hadoop.apache.org/cluster-id": "green"})
        await world.advance(2)
        assert world.rms["green"].capacity(node_id).vcores == 20
        assert not world.controller.notices.of("node-1")


async def test_node_managers_that_register_anew_after_a_restart_of_the_resource_manager_are_no_news() -> None:
    world = World()
    world.manager(used=USED)
    async with world:
        listed = dict(world.rm.reports)
        world.rm.reports.clear()
        await world.advance(10)
        assert world.events.reasons("node-1") == []
        world.rm.reports.update(listed)
        await world.advance(10)
        assert world.events.reasons("node-1") == []
        world.rm.reports.clear()
        await world.advance(20)
        assert world.events.reasons("node-1") == ["NodeManagerNotMatched"]

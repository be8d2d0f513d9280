# SPDX-License-Identifier: Apache-2.0
"""Test what people and metrics are told by the running controller."""

from __future__ import annotations

import pytest

from tests.unit.controller.world import GIB, World, origin_text, settings
from yarn_copilot.controller.view import BatchView, YarnView
from yarn_copilot.hadoop.errors import ConnectError
from yarn_copilot.hadoop.model import Resource


async def test_a_node_shows_every_stage_of_its_pipeline() -> None:
    world = World(settings(capacity={"reserve": {"cpu_milli": 500}}))
    world.manager(used=Resource(2048, 2))
    world.pod("job", cpu="3000", memory="4Gi")
    async with world:
        view = world.reader.node("node-1")
        assert view is not None
        assert view.managed
        assert (view.origin.state, view.origin.cpu_milli) == ("known", 20_000)
        assert view.kubernetes_requested == BatchView(cpu_milli=3000, memory_bytes=4 * GIB)
        assert view.reserve == BatchView(cpu_milli=500, memory_bytes=0)
        assert view.target == view.capacity == BatchView(cpu_milli=16_000, memory_bytes=60 * GIB)
        assert view.used == view.claimed == view.claim_wanted == BatchView(cpu_milli=2000, memory_bytes=2 * GIB)
        (manager,) = view.node_managers
        assert (manager.node_id, manager.state, manager.used) == (
            "nm-1:8041",
            "RUNNING",
            YarnView(memory_mib=2048, vcores=2),
        )
        assert manager.used_settled
        assert manager.pending_send is None


async def test_an_update_that_is_not_confirmed_shows_as_pending() -> None:
    world = World()
    world.manager()
    async with world:
        world.rm.applies = False
        world.kube.annotate("node-1", origin=origin_text(9000, "8Gi"))
        await world.advance(1)
        view = world.reader.node("node-1")
        assert view is not None
        assert view.node_managers[0].pending_send == YarnView(memory_mib=8192, vcores=9)
        assert world.reader.clusters()[0].pending_updates == 1
        assert any("was sent and is not confirmed" in line for line in world.reader.explain("node-1") or [])
        assert b'yarn_copilot_cluster_pending_updates{cluster="default"} 1.0' in world.metrics.render()


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        pytest.param({}, "as it should be", id="at rest"),
        pytest.param({"origin": None}, "Origin is absent", id="absent"),
        pytest.param({"origin": "{"}, "Origin is malformed", id="malformed"),
        pytest.param({"third": "{"}, "Our claim is not written", id="third party"),
        pytest.param({"origin": origin_text(500, 5)}, "floor of 1024 MiB and 1 vcores stays", id="floor"),
    ],
)
async def test_a_node_is_explained_in_sentences(prepare: dict[str, str | None], words: str) -> None:
    world = World()
    world.manager()
    async with world:
        world.kube.annotate("node-1", **prepare)
        await world.advance(3)
        sentences = world.reader.explain("node-1")
        assert sentences is not None
        assert any(words in line for line in sentences), sentences


async def test_waits_are_explained() -> None:
    world = World(settings(capacity={"growth_window_seconds": 60}))
    node_id = world.manager(used=Resource(8192, 8))
    async with world:
        world.kube.annotate("node-1", origin=origin_text(30_000, "64Gi"))
        world.rm.change(node_id, used=Resource(1024, 1))
        await world.advance(1.1)
        sentences = " ".join(world.reader.explain("node-1") or [])
        assert "Growth window" in sentences
        assert "waits for its second read" in sentences
        world.rm.down = ConnectError("refused")
        await world.advance(5)
        assert "ResourceManager does not answer" in " ".join(world.reader.explain("node-1") or [])


async def test_an_unknown_node_and_one_without_yarn_are_told_apart() -> None:
    world = World()
    world.node("plain")
    world.manager()
    async with world:
        assert world.reader.node("nobody") is None
        assert world.reader.explain("nobody") is None
        assert any("No NodeManager is on this node" in line for line in world.reader.explain("plain") or [])
        assert [view.node for view in world.reader.nodes()] == ["node-1"]


async def test_clusters_and_queues_are_described_with_their_ages() -> None:
    world = World()
    world.manager()
    async with world:
        (cluster,) = world.reader.clusters()
        assert (cluster.reachable, cluster.nodes_by_state, cluster.error) == (True, {"RUNNING": 1}, "")
        assert [queue.path for queue in world.reader.queues()] == ["root", "root.batch"]
        world.rm.down = ConnectError("refused by rm:8032")
        await world.advance(60)
        (cluster,) = world.reader.clusters()
        assert not cluster.reachable
        assert "refused" in cluster.error
        assert (cluster.age_seconds or 0) > 50
        assert (world.reader.queues()[0].age_seconds or 0) > 50
        text = world.metrics.render()
        assert b'yarn_copilot_cluster_reachable{cluster="default"} 0.0' in text


async def test_the_replica_says_whether_it_is_ready_and_leads() -> None:
    world = World()
    async with world:
        view = world.reader.controller()
        assert (view.leader, view.term, view.ready, view.ready_missing, view.mode) == (True, 1, True, [], "shared")
        assert view.kubernetes_age_seconds is not None
        world.leadership.is_leader, world.leadership.holder = False, "two"
        view = world.reader.controller()
        assert (view.identity, view.leader, view.leader_identity) == ("one", False, "two")
        assert b"yarn_copilot_ready 1.0" in world.metrics.render()


async def test_a_scrape_holds_one_row_per_node_and_counts_reasons() -> None:
    world = World()
    world.manager(1, used=Resource(2048, 2))
    world.manager(2)
    world.kube.annotate("node-2", origin=None)
    async with world:
        table = world.reader.table()
        rows = {row.node: row for row in table.pipeline}
        assert rows["node-1"].origin == (20_000, 64 * GIB)
        assert rows["node-1"].claimed == rows["node-1"].used == (2000, 2 * GIB)
        assert rows["node-2"].origin is None
        assert {row.node_id for row in table.node_managers} == {"nm-1:8041", "nm-2:8041"}
        assert (table.managed_nodes, table.held_nodes, dict(table.reasons)) == (2, 1, {"OriginAbsent": 1})


async def test_propagation_counts_from_the_change_that_caused_the_update() -> None:
    world = World()
    node_id = world.manager()
    async with world:
        world.kube.annotate("node-1", origin=origin_text(20_100, "64Gi"))  # changes no whole vcore
        await world.advance(300)
        before = _sum(world, "sent")
        world.pod("job", cpu="5000", memory="1Gi")
        await world.advance(2)
        assert world.rm.capacity(node_id).vcores == 15
        assert _sum(world, "sent") - before < 1.0


async def test_lists_and_malformed_objects_are_counted() -> None:
    world = World()
    world.manager()
    async with world:
        world.kube.put("nodes", "odd", {"metadata": {"name": "odd", "labels": 7}})
        await world.advance(2)
        text = world.metrics.render()
        assert b'yarn_copilot_watch_relists_total{kind="nodes"} 1.0' in text
        assert b'yarn_copilot_watch_malformed_objects_total{kind="nodes"} 1.0' in text


def _sum(world: World, stage: str) -> float:
    prefix = f'yarn_copilot_capacity_propagation_seconds_sum{{stage="{stage}"}} '
    lines = world.metrics.render().decode().splitlines()
    return sum(float(line.removeprefix(prefix)) for line in lines if line.startswith(prefix))

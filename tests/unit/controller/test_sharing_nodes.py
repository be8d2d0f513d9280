# SPDX-License-Identifier: Apache-2.0
"""Test nodes that carry NodeManagers of several YARN clusters."""

from __future__ import annotations

from tests.unit.controller.outside import ZERO
from tests.unit.controller.world import World, origin_text, settings
from yarn_copilot.hadoop.errors import ConnectError
from yarn_copilot.hadoop.model import Resource

TWO = ("a", "b")


async def test_the_budget_is_split_and_the_claim_is_the_sum() -> None:
    world = World(clusters=TWO)
    first = world.manager(cluster="a", used=Resource(4096, 4))
    second = world.manager(cluster="b", used=Resource(2048, 2))
    async with world:
        assert world.rms["a"].capacity(first) == Resource(32 << 10, 10)
        assert world.rms["b"].capacity(second) == Resource(32 << 10, 10)
        assert world.claim() == (6000, 6144)


async def test_a_cluster_that_is_down_keeps_what_it_may_fill_and_the_other_goes_on_with_the_rest() -> None:
    world = World(clusters=TWO)
    first = world.manager(cluster="a", used=Resource(4096, 4))
    second = world.manager(cluster="b", used=Resource(2048, 2))
    async with world:
        world.rms["b"].down = ConnectError("refused")
        await world.advance(3)
        calls = len(world.rms["b"].batches)
        world.kube.annotate("node-1", origin=origin_text(16_000, "64Gi"))
        world.rms["a"].change(first, used=Resource(5120, 5))
        await world.advance(3)
        assert world.rms["a"].capacity(first).vcores == 6
        assert len(world.rms["b"].batches) == calls
        assert world.claim() == (7000, 7168)
        world.rms["b"].down = None
        await world.advance(8)
        assert world.rms["a"].capacity(first).vcores == 8
        assert world.rms["b"].capacity(second).vcores == 8


async def test_only_nodes_of_the_cluster_that_is_down_are_frozen() -> None:
    world = World(clusters=TWO)
    first, second = world.manager(1, cluster="a"), world.manager(2, cluster="b")
    async with world:
        world.rms["b"].down = ConnectError("refused")
        await world.advance(2)
        for index in (1, 2):
            world.kube.annotate(f"node-{index}", origin=origin_text(9000, "8Gi"))
        await world.advance(2)
        assert world.rms["a"].capacity(first).vcores == 9
        assert world.rms["b"].capacity(second).vcores == 20
        unreachable = [text for _, reason, text in world.events.of_controller if reason == "ResourceManagerUnreachable"]
        assert len(unreachable) == 1
        assert "cluster b" in unreachable[0]


async def test_after_a_restart_with_one_cluster_down_a_rise_of_the_other_comes_on_top_of_what_is_unread() -> None:
    world = World(clusters=TWO)
    first = world.manager(cluster="a", used=Resource(5120, 5))
    second = world.manager(cluster="b", used=Resource(8192, 8))
    async with world:
        assert world.claim() == (13_000, 13_312)
        world.rms["b"].down = ConnectError("refused")
        await world.restart()
        world.rms["a"].change(first, used=Resource(9216, 9))
        await world.advance(3)
        assert world.claim() == (17_000, 17_408)
        world.rms["a"].change(first, used=Resource(1024, 1))
        await world.advance(5)
        assert world.claim() == (17_000, 17_408)
        world.rms["b"].down = None
        world.rms["b"].change(second, used=Resource(2048, 2))
        await world.advance(10)
        assert world.claim() == (3000, 3072)


async def test_the_default_cluster_takes_pods_without_the_annotation() -> None:
    world = World(settings(node_managers={"default_cluster": "b"}), clusters=TWO)
    world.node()
    world.pod("nm-1", manager=True)
    node_id = world.rms["b"].add("nm-1:8041")
    async with world:
        assert world.rms["b"].capacity(node_id).vcores == 20


async def test_one_cluster_leaving_a_node_gives_its_part_to_the_other() -> None:
    world = World(clusters=TWO)
    first = world.manager(cluster="a", used=Resource(4096, 4))
    second = world.manager(cluster="b", used=Resource(2048, 2))
    async with world:
        world.kube.delete("pods", "yarn/nm-1-b")
        await world.advance(2)
        assert world.rms["a"].capacity(first).vcores == 18
        assert world.claim() == (6000, 6144)
        world.rms["b"].change(second, used=ZERO)
        await world.advance(4)
        assert world.rms["a"].capacity(first).vcores == 20
        assert world.claim() == (4000, 4096)

# SPDX-License-Identifier: Apache-2.0
"""The mode is chosen by cluster or by labels of the Node, the stricter one wins, and observing writes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from batch_resources.planner.policy import Mode
from tests.unit.controller.outside import FRESH
from tests.unit.controller.strict_world import STRICT, StrictWorld
from tests.unit.controller.test_strict import OFFICE, SETTLE
from tests.unit.controller.world import GIB, World, settings
from yarn_copilot.config.changes import changed_fields, with_reloadable
from yarn_copilot.hadoop.model import Resource

FULL = Resource(64 * 1024, 20)
GROWN = Resource(63 * 1024, 19)


async def test_labels_choose_the_mode_of_single_nodes() -> None:
    world = StrictWorld(node_modes={"pool=batch": "shared"})
    world.node("node-1", labels={"pool": "batch"})
    shared, strict = world.manager(1), world.manager(2)
    async with world:
        await world.advance(1)
        assert world.rm.capacity(shared) == FULL  # no step has to be waited for
        assert world.claim("node-1") == (1000, 1024)
        assert world.rm.capacity(strict) == FRESH
        await world.advance(OFFICE + SETTLE)
        assert world.rm.capacity(strict) == GROWN
        assert world.claim("node-2") == (19_000, 63 * 1024)
        views = {view.node: view.mode for view in world.reader.nodes()}
        assert views == {"node-1": "shared", "node-2": "strict"}
        assert "The node is planned by mode shared." in (world.reader.explain("node-1") or [])


async def test_on_a_node_of_two_clusters_the_stricter_mode_counts_for_both() -> None:
    world = StrictWorld(clusters=("a", "b"), cluster_modes={"a": "shared"})
    world.manager(1, cluster="a")
    world.manager(1, cluster="b")
    world.manager(2, cluster="a")
    async with world:
        await world.advance(1)
        assert world.memory("node-1").mode is Mode.STRICT
        assert world.memory("node-2").mode is Mode.SHARED


@pytest.mark.parametrize(
    ("labels", "mode"),
    [
        pytest.param({"pool": "a"}, Mode.SHARED, id="one selector"),
        pytest.param({"pool": "a", "rack": "r1"}, Mode.STRICT, id="two selectors: the stricter"),
        pytest.param({"rack": "r2"}, Mode.SHARED, id="none: the cluster's"),
        pytest.param({"pool": "b", "zone": "z"}, Mode.STRICT, id="not equal"),
    ],
)
async def test_which_mode_wins(labels: dict[str, str], mode: Mode) -> None:
    modes = {"pool=a": "shared", "rack=r1": "strict", "pool!=a,zone=z": "strict"}
    world = World(settings(capacity={"cluster_modes": {"default": "shared"}, "node_modes": modes}))
    world.node(labels=labels)
    world.manager()
    async with world:
        assert world.memory().mode is mode


async def test_a_node_that_becomes_strict_waits_until_updates_of_before_are_dead() -> None:
    world = StrictWorld(node_modes={"pool=batch": "shared"})
    world.node("node-1", labels={"pool": "batch"})
    node_id = world.manager(1)
    async with world:
        await world.advance(OFFICE + 1)
        assert world.rm.capacity(node_id) == FULL
        body = world.kube.objects["nodes"]["node-1"]
        world.kube.put("nodes", "node-1", {**body, "metadata": {**body["metadata"], "labels": {}}})
        await world.advance(3)
        assert world.memory().mode is Mode.STRICT
        assert world.claim() == (20_000, 64 * 1024)  # all that YARN has is claimed at once
        assert world.rm.capacity(node_id) == FULL
        await world.advance(OFFICE + SETTLE)
        assert world.rm.capacity(node_id) == GROWN
        assert world.claim() == (19_000, 63 * 1024)


@pytest.mark.parametrize("observed", ["shared", "strict"])
async def test_observing_computes_everything_and_calls_nothing(observed: str) -> None:
    world = StrictWorld(mode="observe", observed_mode=observed, strict=STRICT["strict"])
    world.leadership.is_leader = False
    node_id = world.manager()
    world.controller.observe()
    async with world:
        world.controller.observe()
        await world.advance(OFFICE + SETTLE)
        world.pod("batch-1", cpu="5000", memory=str(4 * GIB))
        world.rm.change(node_id, used=Resource(4096, 4))
        await world.advance(20)
        assert (world.kube.patches, world.rm.batches, world.events.of_nodes) == ([], [], [])
        view = world.reader.node("node-1")
        assert view is not None
        assert view.planned is not None
        assert view.planned.because == "observing"
        assert view.planned.capacity is not None
        assert view.planned.capacity.cpu_milli == (15_000 if observed == "shared" else 14_000)
        assert "claim" in view.planned.writes
        assert any("Nothing is written in mode observe" in line for line in world.reader.explain("node-1") or [])


def test_only_a_restart_begins_or_ends_observing() -> None:
    def with_mode(mode: str, **more: Any) -> Any:
        return settings(capacity={"mode": mode, **more})

    changes = changed_fields(with_mode("shared"), with_mode("observe", dead_band_vcores=1))
    assert changes.needs_restart == ("capacity.mode",)
    assert changes.reloadable == ("capacity.dead_band_vcores",)
    kept = with_reloadable(with_mode("shared"), with_mode("observe", dead_band_vcores=1))
    assert (kept.capacity.mode.value, kept.capacity.dead_band_vcores) == ("shared", 1)
    assert changed_fields(with_mode("shared"), with_mode("strict")).reloadable == ("capacity.mode",)

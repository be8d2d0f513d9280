# SPDX-License-Identifier: Apache-2.0
"""An operator's annotations on a Node: drain and its undoing, release, pause, cap, fix, and texts that are wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.controller.kubernetes import THIRD
from tests.unit.controller.outside import FRESH, ZERO
from tests.unit.controller.strict_world import COUNTER, StrictWorld
from tests.unit.controller.test_strict import OFFICE, SETTLE
from tests.unit.controller.world import GIB, World, settings
from yarn_copilot.controller.view import DrainView, PlannedView
from yarn_copilot.hadoop.model import NodeId, Resource

DRAIN = "yarn-copilot/drain"
PAUSE = "yarn-copilot/pause"
CAP = "yarn-copilot/cap"
FIX = "yarn-copilot/fix"
FLOOR = (1000, 1024)
USED = Resource(4096, 4)


def order(world: World, key: str, text: str | None, node: str = "node-1") -> None:
    world.kube.annotate(node, **{key: text})


def drained(world: World, node: str = "node-1") -> DrainView | None:
    view = world.reader.node(node)
    assert view is not None
    return view.drain


def planned(world: World, node: str = "node-1") -> PlannedView:
    view = world.reader.node(node)
    assert view is not None
    assert view.planned is not None
    return view.planned


def terminate(world: World, key: str = "yarn/nm-1") -> None:
    body: dict[str, Any] = json.loads(json.dumps(world.kube.objects["pods"][key]))
    body["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    world.kube.put("pods", key, body)


# Drain


async def test_a_drain_lowers_capacity_waits_for_containers_and_lets_the_claim_follow() -> None:
    world = World()
    node_id = world.manager(used=USED)
    world.rm.change(node_id, containers=4)
    async with world:
        order(world, DRAIN, "reason=new disk")
        await world.advance(2)
        assert world.rm.capacity(node_id) == FRESH
        assert world.claim() == (4000, 4096)
        view = drained(world)
        assert view is not None
        assert (view.state, view.containers) == ("draining", 4)
        assert world.events.reasons("node-1") == ["Draining"]
        assert world.controller.notices.held_nodes() == 0
        world.rm.change(node_id, used=Resource(1024, 1), containers=1)
        await world.advance(4)
        assert world.claim() == FLOOR
        world.rm.change(node_id, used=ZERO, containers=0)
        await world.advance(4)
        view = drained(world)
        assert view is not None
        assert (view.state, view.containers) == ("drained", 0)
        assert world.events.reasons("node-1") == ["Draining", "Drained"]
        assert any("new disk" in event[3] for event in world.events.of_nodes)


async def test_a_drain_that_is_taken_back_gives_the_capacity_back() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        before = world.rm.capacity(node_id)
        order(world, DRAIN, "true")
        await world.advance(2)
        assert world.rm.capacity(node_id) == FRESH
        order(world, DRAIN, None)
        await world.advance(2)
        assert world.rm.capacity(node_id) == before
        assert drained(world) is None


async def test_a_deadline_is_told_kills_nothing_and_leaves_the_order_standing() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        wall = int(world.clock.wall()) + 30
        order(world, DRAIN, f"deadline={datetime.fromtimestamp(wall, UTC):%Y-%m-%dT%H:%M:%SZ}")
        await world.advance(20)
        assert "DrainOverdue" not in world.events.reasons("node-1")
        await world.advance(15)
        assert "DrainOverdue" in world.events.reasons("node-1")
        view = drained(world)
        assert view is not None
        assert view.state == "overdue"
        assert world.rm.capacity(node_id) == FRESH
        world.rm.change(node_id, used=ZERO)
        await world.advance(4)
        view = drained(world)
        assert view is not None
        assert view.state == "drained"


async def test_a_node_manager_pod_that_is_being_deleted_drains() -> None:
    world = World()
    node_id = world.manager(used=USED)
    other = world.manager(2)
    async with world:
        terminate(world)
        await world.advance(2)
        assert world.rm.capacity(node_id) == FRESH
        assert world.rm.capacity(other) == Resource(64 * 1024, 20)
        assert "Draining" in world.events.reasons("node-1")


async def test_of_two_node_managers_only_the_one_whose_pod_goes_drains() -> None:
    world = World(clusters=("a", "b"))
    leaving = world.manager(cluster="a", used=USED)
    staying = world.manager(cluster="b")
    async with world:
        terminate(world, "yarn/nm-1-a")
        await world.advance(2)
        assert world.rms["a"].capacity(leaving) == FRESH
        assert world.rms["b"].capacity(staying) == Resource(60 * 1024, 16)
        message = next(event[3] for event in world.events.of_nodes if event[2] == "Draining")
        assert "nm-1-a:8041 of cluster a" in message


@pytest.mark.parametrize("is_on", [True, False])
async def test_a_cordon_drains_only_where_that_is_asked_for(is_on: bool) -> None:
    world = World(settings(node_managers={"drain_cordoned_nodes": is_on}))
    node_id = world.manager(used=USED)
    async with world:
        body = json.loads(json.dumps(world.kube.objects["nodes"]["node-1"]))
        body["spec"] = {"unschedulable": True}
        world.kube.put("nodes", "node-1", body)
        await world.advance(2)
        assert (world.rm.capacity(node_id) == FRESH) is is_on


async def test_in_mode_strict_a_drained_node_keeps_its_floor_claimed_and_undo_goes_through_all_steps() -> None:
    world = StrictWorld()
    node_id = world.manager()
    async with world:
        await world.advance(OFFICE + SETTLE)
        assert world.rm.capacity(node_id) == Resource(63 * 1024, 19)
        world.rm.change(node_id, used=USED, containers=4)
        await world.advance(1)
        order(world, DRAIN, "true")
        await world.advance(20)
        assert world.rm.capacity(node_id) == FRESH
        assert world.claim() == (4000, 4096)
        world.rm.change(node_id, used=ZERO, containers=0)
        await world.advance(20)
        assert world.claim() == FLOOR
        view = drained(world)
        assert view is not None
        assert view.state == "drained"
        order(world, DRAIN, None)
        await world.advance(3)
        assert world.claim() == (19_000, 63 * 1024)  # claimed first
        assert world.rm.capacity(node_id) == FRESH
        await world.advance(SETTLE)
        assert world.rm.capacity(node_id) == Resource(63 * 1024, 19)


# Release


async def released(world: World, node_id: NodeId) -> None:
    order(world, DRAIN, "release=true")
    await world.advance(15)
    world.rm.change(node_id, used=ZERO)
    await world.advance(25)


@pytest.mark.parametrize("kind", [World, StrictWorld])
async def test_a_release_takes_our_entry_and_counter_away_and_a_restart_does_not_bring_them_back(
    kind: type[World],
) -> None:
    world = kind()
    node_id = world.manager()
    async with world:
        await world.advance(OFFICE + SETTLE)
        world.rm.change(node_id, used=USED)
        await world.advance(5)
        assert world.claim() is not None
        await released(world, node_id)
        assert world.claim() is None
        assert world.kube.annotation("node-1", COUNTER) is None
        assert world.rm.capacity(node_id) == FRESH
        assert world.events.reasons("node-1")[-1] == "Released"
        await world.restart()
        await world.advance(OFFICE + SETTLE)
        assert world.claim() is None
        assert world.rm.capacity(node_id) == FRESH
        order(world, DRAIN, None)
        await world.advance(OFFICE + SETTLE)
        assert world.claim() is not None
        assert world.rm.capacity(node_id) != FRESH


async def test_entries_of_others_survive_a_release() -> None:
    world = World()
    world.node(third='{"allocations":[{"name":"other","priority":"koord-batch","resources":{}}],"note":1}')
    node_id = world.manager()
    async with world:
        text = world.kube.annotation("node-1")
        assert text is not None
        assert "hadoop-yarn" in text
        await released(world, node_id)
        left = world.kube.annotation("node-1")
        assert left is not None
        assert json.loads(left) == {
            "allocations": [{"name": "other", "priority": "koord-batch", "resources": {}}],
            "note": 1,
        }


async def test_the_order_to_release_goes_when_the_node_has_been_without_a_node_manager_for_long() -> None:
    world = World()
    node_id = world.manager()
    async with world:
        await released(world, node_id)
        world.kube.delete("pods", "yarn/nm-1")
        await world.advance(60)
        assert world.kube.annotation("node-1", DRAIN) == "release=true"  # it may be a restart
        await world.restart()
        await world.advance(world.settings.yarn.lost_hold_seconds + 60)
        assert world.kube.annotation("node-1", DRAIN) is None
        assert world.kube.annotation("node-1", THIRD) is None
        assert world.controller.book.memory("node-1") is None


async def test_a_deadline_that_lies_ahead_does_not_keep_the_order_to_release() -> None:
    world = World()
    node_id = world.manager()
    async with world:
        await released(world, node_id)
        order(world, DRAIN, "deadline=2100-01-01T00:00:00Z; release=true")
        world.kube.delete("pods", "yarn/nm-1")
        await world.advance(world.settings.yarn.lost_hold_seconds + 60)
        assert world.kube.annotation("node-1", DRAIN) is None


async def test_an_order_that_is_no_release_is_never_removed() -> None:
    world = World()
    world.node(annotations={DRAIN: "true"})
    async with world:
        await world.advance(world.settings.yarn.lost_hold_seconds + 60)
        assert world.kube.annotation("node-1", DRAIN) == "true"
        assert world.kube.patches == []


# Pause, cap, fix


async def test_a_paused_node_is_written_to_by_nobody_and_shows_what_it_would_get() -> None:
    world = World()
    node_id = world.manager()
    async with world:
        writes = (len(world.kube.patches), len(world.rm.batches))
        order(world, PAUSE, "true")
        await world.advance(1)
        world.pod("batch-1", cpu="5000", memory=str(4 * GIB))
        world.rm.change(node_id, used=USED)
        await world.advance(10)
        assert (len(world.kube.patches), len(world.rm.batches)) == writes
        view = planned(world)
        assert view.because == "paused"
        assert view.writes == ["capacity of nm-1:8041", "claim"]
        assert view.capacity is not None
        assert view.capacity.cpu_milli == 15_000
        assert world.events.reasons("node-1") == ["Paused"]
        order(world, PAUSE, None)
        await world.advance(2)
        assert world.rm.capacity(node_id) == Resource(60 * 1024, 15)
        assert world.claim() == (4000, 4096)
        assert planned(world).because == ""


async def test_a_pause_ends_at_its_time_without_any_event() -> None:
    world = World()
    node_id = world.manager()
    async with world:
        until = datetime.fromtimestamp(int(world.clock.wall()) + 20, UTC)
        order(world, PAUSE, f"until={until:%Y-%m-%dT%H:%M:%SZ}")
        await world.advance(1)
        world.pod("batch-1", cpu="5000", memory="0")
        await world.advance(10)
        assert world.rm.capacity(node_id).vcores == 20
        await world.advance(12)
        assert world.rm.capacity(node_id).vcores == 15


async def test_cap_and_fix_bound_the_capacity_of_a_node() -> None:
    world = World()
    node_id = world.manager()
    async with world:
        order(world, CAP, "cpu=6500m")
        await world.advance(2)
        assert world.rm.capacity(node_id) == Resource(64 * 1024, 6)
        order(world, FIX, "cpu=3; memory=8Gi")
        await world.advance(2)
        assert world.rm.capacity(node_id) == Resource(8 * 1024, 3)
        order(world, CAP, None)
        order(world, FIX, "cpu=50")
        await world.advance(2)
        assert world.rm.capacity(node_id) == Resource(64 * 1024, 20)
        assert "FixExceedsOrigin" in world.events.reasons("node-1")


async def test_an_order_that_cannot_be_read_is_told_and_stops_growth_only() -> None:
    world = World()
    world.node(annotations={CAP: "a lot"})
    node_id = world.manager()
    async with world:
        assert world.rm.capacity(node_id) == FRESH
        message = next(event[3] for event in world.events.of_nodes if event[2] == "OrderMalformed")
        assert "yarn-copilot/cap" in message
        assert "cpu" in message
        assert world.claim() == FLOOR
        order(world, CAP, "cpu=4")
        await world.advance(2)
        assert world.rm.capacity(node_id) == Resource(64 * 1024, 4)


async def test_explain_names_orders_and_what_is_held_back() -> None:
    world = World()
    world.manager(used=USED)
    async with world:
        order(world, DRAIN, "release=true; reason=new disk")
        order(world, PAUSE, "true")
        await world.advance(2)
        text = "\n".join(world.reader.explain("node-1") or [])
        assert "Order drain: release=true; reason=new disk." in text
        assert "YARN leaves this node: draining" in text
        assert "Nothing is written while the node is paused; now this would be: capacity of nm-1:8041." in text

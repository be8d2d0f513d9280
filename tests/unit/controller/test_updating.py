# SPDX-License-Identifier: Apache-2.0
"""Test what becomes of updates that the ResourceManager refuses, loses or does not know."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.unit.controller.outside import FRESH, unrecognized
from tests.unit.controller.world import World, origin_text, settings
from yarn_copilot.hadoop.errors import AccessDeniedError, CallTimeoutError, ConnectError, StandbyError
from yarn_copilot.hadoop.model import FAR_OVERCOMMIT_TIMEOUT_MILLIS, NodeId, Resource, ResourceInformation
from yarn_copilot.hadoop.rest.client import CustomTypesError

UNKNOWN = "NodeManagerUnknownToResourceManager"


def standby() -> StandbyError:
    return StandbyError("org.apache.hadoop.ipc.StandbyException", "not active")


def denied() -> AccessDeniedError:
    return AccessDeniedError("org.apache.hadoop.security.AccessControlException", "User nobody")


async def test_one_unknown_node_does_not_keep_the_others_from_their_update() -> None:
    world = World()
    for index in (1, 2, 3):
        world.manager(index)
    async with world:
        world.rm.unknown.add(NodeId("nm-2", 8041))
        calls = len(world.rm.batches)
        for index in (1, 2, 3):
            world.kube.annotate(f"node-{index}", origin=origin_text(9000, "8Gi"))
        await world.advance(0.1)
        assert [len(batch) for batch in world.rm.batches[calls:]] == [3, 2]
        assert world.rm.capacity(NodeId("nm-1", 8041)).vcores == 9
        assert world.rm.capacity(NodeId("nm-2", 8041)).vcores == 20
        assert world.rm.capacity(NodeId("nm-3", 8041)).vcores == 9


async def test_a_node_that_rest_cannot_write_is_not_called_unknown_and_the_others_are_served() -> None:
    world = World()
    for index in (1, 2):
        world.manager(index)
    async with world:
        world.rm.update_errors.append(CustomTypesError(NodeId("nm-2", 8041), ["yarn.io/gpu=2"]))
        for index in (1, 2):
            world.kube.annotate(f"node-{index}", origin=origin_text(9000, "8Gi"))
        await world.advance(0.1)
        assert world.rm.capacity(NodeId("nm-1", 8041)).vcores == 9
        assert world.rm.capacity(NodeId("nm-2", 8041)).vcores == 20
        (told,) = [event for event in world.events.of_nodes if event[2] == "NodeManagerNotWritable"]
        assert told[0] == "node-2"
        assert "nm-2:8041 has yarn.io/gpu=2, and REST would set that to zero; use transport rpc" in told[3]
        assert UNKNOWN not in world.events.reasons("node-2")


async def test_each_step_of_the_back_off_is_told_once_doubles_and_ends_at_the_maximum() -> None:
    world = World(settings(yarn={"unrecognized_backoff_max_seconds": 8}))
    world.manager(1)
    async with world:
        world.rm.unknown.add(NodeId("nm-1", 8041))
        world.kube.annotate("node-1", origin=origin_text(9000, "8Gi"))
        tries = []
        for _ in range(400):
            calls = len(world.rm.batches)
            await world.advance(0.1)
            if len(world.rm.batches) > calls:
                tries.append(world.clock.now)
        waits = [later - earlier for earlier, later in pairwise(tries)]
        assert waits[:8] == pytest.approx([0.25, 0.5, 1, 2, 4, 8, 8, 8], abs=0.11)
        assert world.events.reasons("node-1").count(UNKNOWN) == len(tries)
        assert "nm-1:8041" in next(event for event in world.events.of_nodes if event[2] == UNKNOWN)[3]


async def test_the_back_off_begins_anew_once_the_node_was_accepted() -> None:
    world = World()
    world.manager(1)
    async with world:
        world.rm.unknown.add(NodeId("nm-1", 8041))
        world.kube.annotate("node-1", origin=origin_text(9000, "8Gi"))
        await world.advance(4)
        manager = next(iter(world.memory().managers.values()))
        assert manager.unrecognized_count > 1
        world.rm.unknown.clear()
        await world.advance(8)
        assert world.rm.capacity(NodeId("nm-1", 8041)).vcores == 9
        assert (manager.unrecognized_count, manager.retry_at) == (0, 0.0)


async def test_an_answer_that_names_a_foreign_node_is_tried_again_without_spinning() -> None:
    world = World()
    world.manager(1)
    async with world:
        world.rm.update_errors.extend([unrecognized("elsewhere:1")] * 3)
        calls = len(world.rm.batches)
        world.kube.annotate("node-1", origin=origin_text(9000, "8Gi"))
        await world.advance(0.2)
        assert len(world.rm.batches) == calls + 1
        await world.advance(10)
        assert len(world.rm.batches) == calls + 4
        assert world.rm.capacity(NodeId("nm-1", 8041)).vcores == 9


async def test_very_many_unknown_nodes_do_not_cost_one_call_each_in_one_cycle() -> None:
    world = World()
    for index in range(1, 61):
        world.manager(index)
    async with world:
        world.rm.unknown.update(NodeId(f"nm-{index}", 8041) for index in range(1, 51))
        calls = len(world.rm.batches)
        for index in range(1, 61):
            world.kube.annotate(f"node-{index}", origin=origin_text(9000, "8Gi"))
        await world.advance(0.1)
        assert len(world.rm.batches) - calls == 32
        await world.advance(3)
        assert world.rm.capacity(NodeId("nm-60", 8041)).vcores == 9


@pytest.mark.parametrize("lands", [True, False], ids=["landed", "lost"])
async def test_an_update_without_an_answer_is_repeated_and_no_claim_falls_meanwhile(lands: bool) -> None:
    world = World()
    node_id = world.manager(used=Resource(8192, 8))
    async with world:
        world.rm.update_errors.append(CallTimeoutError("no answer within 4 s"))
        world.rm.lands_before_error = lands
        world.rm.change(node_id, used=Resource(0, 0))
        world.kube.annotate("node-1", origin=origin_text(9000, "32Gi"))
        await world.advance(5)
        assert world.rm.capacity(node_id).vcores == 9
        assert world.claim() == (8000, 8192)
        await world.advance(12)
        assert world.claim() == (1000, 1024)


@pytest.mark.parametrize(
    "error", [standby(), denied(), ConnectError("refused")], ids=["standby", "denied", "not connected"]
)
async def test_a_refused_update_is_tried_again_with_growing_waits(error: Exception) -> None:
    world = World()
    node_id = world.manager()
    async with world:
        calls = len(world.rm.batches)
        world.rm.update_errors.extend([error] * 5)
        world.kube.annotate("node-1", origin=origin_text(9000, "8Gi"))
        await world.advance(1)
        assert 1 <= len(world.rm.batches) - calls <= 3
        await world.advance(60)
        assert world.rm.capacity(node_id).vcores == 9
        assert len(world.rm.batches) - calls == 6
        assert not next(iter(world.memory().managers.values())).sends


async def test_an_update_that_the_resource_manager_swallows_is_repeated_after_the_messages_lifetime() -> None:
    world = World()
    node_id = world.manager()
    async with world:
        world.rm.applies = False
        world.kube.annotate("node-1", origin=origin_text(9000, "8Gi"))
        await world.advance(2)
        calls = len(world.rm.batches)
        world.rm.accepted.clear()
        world.rm.applies = True
        await world.advance(5)
        assert len(world.rm.batches) == calls
        await world.advance(8)
        assert world.rm.capacity(node_id).vcores == 9


async def test_every_update_disarms_and_keeps_custom_resource_types() -> None:
    world = World()
    gpus = (ResourceInformation("yarn.io/gpu", 4),)
    world.manager(capacity=Resource(1024, 1, gpus))
    async with world:
        (update,) = world.rm.batches[0]
        assert update.overcommit_timeout_millis == FAR_OVERCOMMIT_TIMEOUT_MILLIS
        assert update.resource.custom == gpus


async def test_the_newest_decision_replaces_what_waits_behind_a_call_in_flight() -> None:
    world = World()
    node_id = world.manager()
    async with world:
        world.rm.gate.clear()
        calls = len(world.rm.batches)
        for cpu in (9000, 8000, 7000):
            world.kube.annotate("node-1", origin=origin_text(cpu, "8Gi"))
            await world.advance(0.3)
        world.rm.gate.set()
        await world.advance(2)
        assert [batch[0].resource.vcores for batch in world.rm.batches[calls:]] == [9, 7]
        assert world.rm.capacity(node_id).vcores == 7


async def test_leadership_lost_in_the_middle_of_a_batch_stops_its_repetition() -> None:
    world = World()
    world.manager(1)
    world.manager(2)
    async with world:
        world.rm.unknown.add(NodeId("nm-1", 8041))
        calls = len(world.rm.batches)
        world.leadership.checks_left = 1
        for index in (1, 2):
            world.kube.annotate(f"node-{index}", origin=origin_text(9000, "8Gi"))
        await world.advance(3)
        assert len(world.rm.batches) == calls + 1
        world.leadership.checks_left = None
        world.rm.unknown.clear()
        world.lead(True)
        await world.advance(3)
        assert {report.capability.vcores for report in world.rm.reports.values()} == {9}


async def test_an_update_for_a_node_that_has_gone_meanwhile_is_not_sent() -> None:
    world = World()
    world.manager(1)
    world.manager(2)
    async with world:
        world.rm.gate.clear()
        world.kube.annotate("node-1", origin=origin_text(9000, "8Gi"))
        await world.advance(0.2)
        world.kube.annotate("node-2", origin=origin_text(9000, "8Gi"))
        await world.advance(0.2)
        world.kube.delete("nodes", "node-2")
        await world.advance(0.2)
        calls = len(world.rm.batches)
        world.rm.gate.set()
        await world.advance(2)
        assert len(world.rm.batches) == calls


async def test_a_small_growth_within_the_dead_band_is_not_sent_but_a_fall_is() -> None:
    world = World(settings(capacity={"dead_band_vcores": 3, "dead_band_memory_mib": 4096}))
    node_id = world.manager()
    async with world:
        calls = len(world.rm.batches)
        world.kube.annotate("node-1", origin=origin_text(22_000, "65Gi"))
        await world.advance(2)
        assert len(world.rm.batches) == calls
        world.kube.annotate("node-1", origin=origin_text(19_000, "64Gi"))
        await world.advance(2)
        assert world.rm.capacity(node_id) == Resource(65536, 19)


async def test_a_node_manager_that_restarts_gets_its_capacity_back_at_once() -> None:
    world = World()
    node_id = world.manager()
    async with world:
        world.rm.change(node_id, capability=FRESH)
        await world.advance(1.5)
        assert world.rm.capacity(node_id) == Resource(65536, 20)


async def test_growth_waits_for_the_window_and_a_fall_does_not() -> None:
    world = World(settings(capacity={"growth_window_seconds": 60}))
    node_id = world.manager()
    async with world:
        world.kube.annotate("node-1", origin=origin_text(10_000, "64Gi"))
        await world.advance(1)
        assert world.rm.capacity(node_id).vcores == 10
        world.kube.annotate("node-1", origin=origin_text(30_000, "64Gi"))
        await world.advance(58)
        assert world.rm.capacity(node_id).vcores == 10
        await world.advance(4)
        assert world.rm.capacity(node_id).vcores == 30


def _many(count: int) -> World:
    """Make a world in which so many NodeManagers share a ResourceManager."""
    world = World()
    for index in range(1, count + 1):
        world.manager(index)
    return world


def _vcores(world: World) -> set[int]:
    return {resource.vcores for resource in map(world.rm.capacity, world.rm.reports)}


async def _lowered(world: World, nodes: int, *, per_call: int) -> None:
    """Let every node's capacity have to fall to 9 vcores, in calls of so many nodes; the first of them hangs."""
    world.controller.cluster_set.capacities["default"].nodes_per_call = per_call
    world.rm.gate.clear()
    for index in range(1, nodes + 1):
        world.kube.annotate(f"node-{index}", origin=origin_text(9000, "8Gi"))
    await world.advance(0.1)


async def test_very_many_updates_go_out_in_several_calls_between_which_others_have_a_turn() -> None:
    async with _many(8) as world:
        calls = len(world.rm.batches)
        await _lowered(world, 8, per_call=3)
        assert [len(batch) for batch in world.rm.batches[calls:]] == [3], "one call is in flight"
        world.rm.gate.set()
        await world.advance(0)
        assert [len(batch) for batch in world.rm.batches[calls:]] == [3, 3, 2]
        assert _vcores(world) == {9}


async def test_what_waits_for_a_later_call_is_replaced_by_what_is_decided_meanwhile() -> None:
    async with _many(4) as world:
        calls = len(world.rm.batches)
        await _lowered(world, 4, per_call=2)
        (asked,) = world.rm.batches[calls:]
        later = next(index for index in range(1, 5) if NodeId(f"nm-{index}", 8041) not in {u.node_id for u in asked})
        world.kube.annotate(f"node-{later}", origin=origin_text(7000, "8Gi"))
        await world.advance(0.1)
        world.rm.gate.set()
        await world.advance(0)
        sent = [update.resource.vcores for batch in world.rm.batches[calls:] for update in batch]
        assert sorted(sent) == [7, 9, 9, 9]


async def test_what_is_left_after_a_failed_call_goes_out_after_the_wait() -> None:
    async with _many(4) as world:
        calls = len(world.rm.batches)
        world.rm.update_errors.append(ConnectError("rm:8032"))
        await _lowered(world, 4, per_call=2)
        world.rm.gate.set()
        await world.advance(0.1)
        assert [len(batch) for batch in world.rm.batches[calls:]] == [2], "the server does not answer"
        await world.advance(2)
        assert _vcores(world) == {9}


async def test_nothing_of_what_is_left_goes_out_once_writing_is_not_allowed_any_more() -> None:
    async with _many(4) as world:
        calls = len(world.rm.batches)
        await _lowered(world, 4, per_call=2)
        world.lead(False)
        world.rm.gate.set()
        await world.advance(5)
        assert [len(batch) for batch in world.rm.batches[calls:]] == [2]
        world.lead(True)
        await world.advance(5)
        assert _vcores(world) == {9}

# SPDX-License-Identifier: Apache-2.0
"""Mode strict end to end on fakes: the steps of a transfer, their order, and what each waits for."""

from __future__ import annotations

import itertools
from unittest.mock import AsyncMock

import pytest

from batch_resources.giving_way import NUDGE_LIMIT_MIB
from tests.unit.controller.kubernetes import connection_lost
from tests.unit.controller.strict_world import COUNTER, StrictWorld
from tests.unit.controller.world import GIB, origin_text
from yarn_copilot.controller.steps import Step
from yarn_copilot.hadoop.errors import ConnectError
from yarn_copilot.hadoop.model import Resource

OFFICE = 11.0
"""Seconds after which messages of an earlier leader are dead and a read has begun since."""
SETTLE = 11.0


async def test_grows_only_after_claim_publication_settling_and_a_fresh_read() -> None:
    world = StrictWorld()
    node_id = world.manager()
    async with world:
        await world.advance(5)
        assert world.claim() == (19_000, 63 * 1024)
        assert world.allocatable_cpu() == 1000
        assert world.rm.capacity(node_id) == Resource(1024, 1)
        await world.advance(SETTLE)
        assert world.rm.capacity(node_id) == Resource(63 * 1024, 19)
        assert (world.kube.annotation("node-1", COUNTER) or "").startswith(("1.", "2.", "3."))


async def test_tells_the_steps_of_a_transfer_in_their_order() -> None:
    world = StrictWorld()
    world.manager()
    async with world:
        # An update counts as confirmed when it was read back, long before its lifetime is over.
        await world.advance(OFFICE + 2)
        assert [step for step, _ in itertools.groupby(world.steps)] == list(Step)


async def test_an_update_that_was_read_back_is_not_shown_as_pending() -> None:
    world = StrictWorld()
    node_id = world.manager()
    async with world:
        await world.advance(OFFICE + 2)
        assert world.rm.capacity(node_id) == Resource(63 * 1024, 19)
        memory = world.controller.book.memory("node-1")
        assert memory is not None
        (manager,) = memory.managers.values()
        assert manager.sends, "its message may still be alive"
        view = world.reader.node("node-1")
        assert view is not None
        assert view.node_managers[0].pending_send is None
        assert world.reader.clusters()[0].pending_updates == 0


async def test_writes_once_and_nothing_more_at_rest() -> None:
    world = StrictWorld()
    world.manager()
    async with world:
        await world.advance(OFFICE + SETTLE)
        assert len(world.kube.patches) == 1
        assert len(world.rm.batches) == 1
        reads = world.schedulers["default"].reads
        await world.advance(60)
        assert (len(world.kube.patches), len(world.rm.batches)) == (1, 1)
        assert world.schedulers["default"].reads == reads


async def test_does_not_grow_while_koord_manager_publishes_nothing() -> None:
    world = StrictWorld()
    node_id = world.manager()
    world.publishes = False
    world.kube.objects["nodes"]["node-1"]["status"]["allocatable"] = {
        "kubernetes.io/batch-cpu": "20000",
        "kubernetes.io/batch-memory": str(64 * GIB),
    }
    async with world:
        await world.advance(60)
        assert world.rm.capacity(node_id) == Resource(1024, 1)
        counter = world.kube.annotation("node-1", COUNTER)
        await world.advance(70)
        assert world.kube.annotation("node-1", COUNTER) != counter  # nudged
        world.publishes = True
        await world.advance(SETTLE + 1)
        assert world.rm.capacity(node_id) == Resource(63 * 1024, 19)


async def test_the_fresh_read_counts_where_the_watch_is_behind() -> None:
    world = StrictWorld()
    node_id = world.manager()
    async with world:
        await world.advance(5)
        # A pod is bound from an older permission; the pod watch has not told it yet.
        streams, world.kube.streams["pods"] = world.kube.streams["pods"], []
        world.pod("batch-1", cpu="8000", memory=str(8 * GIB))
        await world.advance(SETTLE)
        world.kube.streams["pods"] = streams
        assert world.rm.capacity(node_id) == Resource(56 * 1024, 12)


async def test_why_no_claim_falls_is_told_once_and_so_is_its_end(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    world = StrictWorld()
    node_id = world.manager(used=Resource(8 * 1024, 8))
    scheduler = world.schedulers["default"]
    async with world:
        await world.advance(OFFICE + SETTLE)
        with monkeypatch.context() as patch:
            patch.setattr(scheduler, "read_scheduler", AsyncMock(side_effect=ConnectError("no web services")))
            world.rm.change(node_id, used=Resource(4 * 1024, 4))
            await world.advance(10)
        await world.advance(10)
    told = [
        record.getMessage() for record in caplog.records if record.getMessage().startswith("The scheduler's figures")
    ]
    assert len(told) == 2
    assert "no web services" in told[0]
    assert told[1] == "The scheduler's figures are read again"


async def test_lowers_the_claim_only_when_the_scheduler_has_the_lower_capacity_and_a_heartbeat_came() -> None:
    world = StrictWorld()
    node_id = world.manager()
    async with world:
        await world.advance(OFFICE + SETTLE + 12)
        scheduler = world.schedulers["default"]
        scheduler.lag[node_id] = world.rm.capacity(node_id)
        world.kube.annotate("node-1", origin=origin_text(8000, 32 * GIB))
        world.report()
        await world.advance(5)
        assert world.rm.capacity(node_id) == Resource(31 * 1024, 7)
        assert world.claim() == (19_000, 63 * 1024)
        scheduler.lag.clear()
        scheduler.beats = False
        await world.advance(5)
        assert world.claim() == (19_000, 63 * 1024)
        scheduler.beats = True
        await world.advance(12)
        assert world.claim() == (7_000, 31 * 1024)


async def test_a_new_leader_sends_nothing_until_older_messages_are_dead() -> None:
    world = StrictWorld()
    node_id = world.manager()
    async with world:
        await world.advance(OFFICE + SETTLE + 2)
        sent = len(world.rm.batches)
        await world.restart()
        world.kube.annotate("node-1", origin=origin_text(8000, 32 * GIB))
        await world.advance(6)
        assert len(world.rm.batches) == sent
        await world.advance(6)
        assert world.rm.capacity(node_id) == Resource(31 * 1024, 7)


async def test_a_growth_after_a_takeover_is_preceded_by_a_write_of_the_new_term() -> None:
    world = StrictWorld()
    node_id = world.manager()
    async with world:
        await world.advance(5)
        before = world.kube.annotation("node-1", COUNTER)
        assert world.rm.capacity(node_id) == Resource(1024, 1)
        await world.restart()
        await world.advance(OFFICE + SETTLE + 2)
        assert world.rm.capacity(node_id) == Resource(63 * 1024, 19)
        assert world.kube.annotation("node-1", COUNTER) != before


async def test_a_patch_without_an_answer_holds_the_growth_until_a_newer_one_has_landed() -> None:
    world = StrictWorld()
    node_id = world.manager()
    world.kube.patch_errors.extend([connection_lost(), connection_lost()])
    world.kube.lands_before_error = True
    async with world:
        await world.advance(OFFICE + SETTLE + 5)
        assert world.rm.capacity(node_id) == Resource(63 * 1024, 19)
        assert world.claim() == (19_000, 63 * 1024)


async def test_a_new_list_of_the_nodes_starts_the_settle_time_again() -> None:
    world = StrictWorld()
    node_id = world.manager()
    async with world:
        await world.advance(6)
        facts = world.controller.nodes.get("node-1")
        assert facts is not None
        world.controller.nodes.replaced({"node-1": facts})
        await world.advance(8)
        assert world.rm.capacity(node_id) == Resource(1024, 1)
        await world.advance(4)
        assert world.rm.capacity(node_id) == Resource(63 * 1024, 19)


async def test_two_clusters_on_a_node_share_one_claim() -> None:
    world = StrictWorld(clusters=("one", "two"))
    world.node("node-1")
    first = world.manager(1, cluster="one")
    second = world.manager(1, cluster="two")
    async with world:
        await world.advance(OFFICE + SETTLE + 4)
        assert world.rms["one"].capacity(first) == Resource(63 * 512, 9)
        assert world.rms["two"].capacity(second) == Resource(63 * 512, 9)
        claimed = world.claim()
        assert claimed is not None
        assert claimed[0] >= 18_000


async def test_a_momentary_zero_costs_neither_the_claim_nor_a_growth_window() -> None:
    world = StrictWorld(growth_window_seconds=60)
    node_id = world.manager(used=Resource(4096, 4))
    async with world:
        await world.advance(OFFICE + SETTLE + 2)
        assert world.rm.capacity(node_id) == Resource(63 * 1024, 19)
        world.kube.annotate("node-1", origin=origin_text(0, 0))
        world.report()
        await world.advance(5)
        assert world.rm.capacity(node_id) == Resource(4096, 4)
        assert world.claim() == (19_000, 63 * 1024)
        world.kube.annotate("node-1", origin=origin_text(20_000, 64 * GIB))
        world.report()
        await world.advance(SETTLE + 4)
        assert world.rm.capacity(node_id) == Resource(63 * 1024, 19)


async def test_a_zero_that_lasts_lowers_the_claim_too() -> None:
    world = StrictWorld()
    node_id = world.manager(used=Resource(4096, 4))
    async with world:
        await world.advance(OFFICE + SETTLE + 2)
        world.kube.annotate("node-1", origin=origin_text(0, 0))
        world.report()
        await world.advance(14)
        assert world.claim() == (19_000, 63 * 1024)
        await world.advance(15)
        # Above the floor there is room for the changes of giving way, while more is in use anyway.
        assert world.rm.capacity(node_id) == Resource(1024 + NUDGE_LIMIT_MIB, 1)
        assert world.claim() == (4_000, 4096)

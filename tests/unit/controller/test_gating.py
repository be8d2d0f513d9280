# SPDX-License-Identifier: Apache-2.0
"""Test when nothing is written: before the first view, in silence, as standby."""

from __future__ import annotations

import pytest

from tests.unit.controller.kubernetes import connection_lost
from tests.unit.controller.outside import LeadershipSwitch
from tests.unit.controller.world import World, origin_text, settings
from tests.unit.kube.manual_clock import ManualClock
from yarn_copilot.controller.gate import WriteGate
from yarn_copilot.hadoop.errors import ConnectError
from yarn_copilot.hadoop.model import Resource
from yarn_copilot.kube.errors import NotFoundError

USED = Resource(8192, 8)


async def test_nothing_is_written_before_the_pods_were_listed() -> None:
    world = World()
    world.manager(used=USED)
    world.kube.unavailable["pods"] = connection_lost()
    async with world:
        await world.advance(20)
        assert (world.rm.batches, world.kube.patches) == ([], [])
        assert not world.controller.ready
        assert any("pods have not been listed" in line for line in world.controller.missing())
        world.kube.unavailable.clear()
        await world.advance(15)
        assert world.controller.ready
        assert world.claim() == (8000, 8192)


async def test_nothing_is_written_before_the_resource_manager_was_read() -> None:
    world = World()
    world.manager(used=USED)
    world.rm.down = ConnectError("refused")
    async with world:
        await world.advance(20)
        assert world.rm.batches == []
        assert not world.controller.ready
        assert any("cluster default" in line for line in world.controller.missing())
        world.rm.down = None
        await world.advance(8)
        assert world.controller.ready
        assert world.claim() == (8000, 8192)


async def test_a_silent_api_server_stops_updates_after_the_limit_and_they_resume_by_themselves() -> None:
    world = World(settings(capacity={"kubernetes_max_silence_seconds": 60}))
    node_id = world.manager(used=USED)
    async with world:
        world.kube.silent = True
        await world.advance(70)
        calls = len(world.rm.batches)
        world.rm.change(node_id, capability=Resource(1024, 1))
        await world.advance(30)
        assert len(world.rm.batches) == calls
        assert "silent" in world.controller.gate.why_not_yarn()
        assert any("silent" in line for line in world.reader.explain("node-1") or [])
        world.kube.release_held()
        world.kube.bookmark()
        await world.advance(3)
        assert world.rm.capacity(node_id) == Resource(65536, 20)


async def test_a_silence_that_ends_between_two_pulses_is_noticed_too() -> None:
    world = World(settings(capacity={"kubernetes_max_silence_seconds": 60}))
    node_id = world.manager(used=USED)
    async with world:
        world.kube.silent = True
        await world.advance(59.95)
        world.controller.gate.max_silence_seconds = 0.0
        world.rm.change(node_id, capability=Resource(1024, 1))
        while not world.controller.gate.was_refused:
            await world.advance(0.05)
        world.controller.gate.max_silence_seconds = 600.0
        await world.advance(2)
        assert world.rm.capacity(node_id) == Resource(65536, 20)


async def test_a_standby_writes_nothing_but_answers_and_takes_over_at_once() -> None:
    world = World()
    node_id = world.manager(used=USED)
    world.leadership.is_leader = False
    async with world:
        world.kube.annotate("node-1", origin=origin_text(30_000, "64Gi"))
        await world.advance(30)
        assert (world.rm.batches, world.kube.patches, world.events.of_nodes) == ([], [], [])
        view = world.reader.node("node-1")
        assert view is not None
        assert view.target is not None
        assert view.target.cpu_milli == 30_000
        assert world.reader.controller().leader is False
        assert any("another replica is leader" in line for line in world.reader.explain("node-1") or [])
        world.lead(True)
        await world.advance(0.5)
        assert world.rm.capacity(node_id).vcores == 30
        assert world.claim() == (8000, 8192)


async def test_a_new_leader_tells_the_conditions_that_it_finds() -> None:
    world = World()
    world.node(origin=None)
    world.manager()
    world.leadership.is_leader = False
    async with world:
        assert world.events.reasons("node-1") == []
        assert world.controller.notices.counts() == {"OriginAbsent": 1}
        world.lead(True)
        await world.advance(1)
        assert world.events.reasons("node-1") == ["OriginAbsent"]
        assert [reason for _, reason, _ in world.events.of_controller if "eader" in reason][-1] == "BecameLeader"


async def test_an_absent_node_metric_kind_stops_growth_with_one_event_and_trust_is_a_choice() -> None:
    world = World()
    node_id = world.manager(1)
    world.manager(2)
    world.kube.unavailable["nodemetrics"] = NotFoundError("404")
    async with world:
        assert world.rm.capacity(node_id).vcores == 1
        told = [event for event in world.events.of_controller if event[1] == "NodeMetricUnavailable"]
        assert len(told) == 1
        assert world.events.reasons("node-1") == []
        world.controller.apply(settings(capacity={"require_node_metric": False}))
        await world.advance(2)
        assert world.rm.capacity(node_id).vcores == 20


async def test_ages_are_unknown_not_old_when_node_metrics_become_unreadable() -> None:
    world = World(settings(capacity={"require_node_metric": False}))
    node_id = world.manager(1)
    async with world:
        world.kube.unavailable["nodemetrics"] = NotFoundError("404")
        world.kube.end_watches()
        await world.advance(2000)
        assert "OriginStale" not in world.controller.notices.counts()
        assert world.rm.capacity(node_id).vcores == 20


async def test_an_origin_that_koordlet_no_longer_reports_grows_stale_and_recovers() -> None:
    world = World()
    node_id = world.manager(used=USED)
    async with world:
        await world.advance(890)
        assert world.rm.capacity(node_id).vcores == 20
        await world.advance(15)
        assert world.rm.capacity(node_id) == USED
        assert world.events.reasons("node-1") == ["OriginStale"]
        world.report()
        await world.advance(2)
        assert world.rm.capacity(node_id).vcores == 20
        assert world.events.reasons("node-1") == ["OriginStale", "OriginRecovered"]


async def test_a_loop_that_fails_unexpectedly_starts_again_and_is_counted() -> None:
    world = World()
    node_id = world.manager()
    async with world:
        world.rm.read_errors.append(RuntimeError("a fault of ours"))
        await world.advance(5)
        world.rm.change(node_id, capability=Resource(1024, 1))
        await world.advance(5)
        assert world.rm.capacity(node_id).vcores == 20
        assert b'error="RuntimeError",loop="cluster_view"' in world.metrics.render()


async def test_a_fault_in_one_nodes_plan_does_not_keep_the_others_from_theirs() -> None:
    world = World()
    first, second = world.manager(1), world.manager(2)
    async with world:
        world.memory("node-1").window = ("not a sample",)  # type: ignore[assignment]  # plays a fault
        for index in (1, 2):
            world.kube.annotate(f"node-{index}", origin=origin_text(9000, "8Gi"))
        await world.advance(2)
        assert world.rm.capacity(first).vcores == 20
        assert world.rm.capacity(second).vcores == 9
        world.memory("node-1").window = ()
        await world.advance(11)
        assert world.rm.capacity(first).vcores == 9


def test_the_gate_says_why() -> None:
    clock, leadership = ManualClock(), LeadershipSwitch()
    contact: list[float | None] = [None]
    complete = [False]
    gate = WriteGate(
        leadership,
        clock,
        kubernetes_contact=lambda: contact[0],
        has_complete_view=lambda: complete[0],
        max_silence_seconds=10,
    )
    assert "listed completely" in gate.why_not_kubernetes()
    complete[0] = True
    assert gate.why_not_kubernetes() == ""
    assert "silent" in gate.why_not_yarn()
    contact[0] = clock.now - 10
    assert gate.why_not_yarn() == ""
    contact[0] = clock.now - 10.1
    assert gate.kubernetes_age_seconds() == pytest.approx(10.1)
    assert "longer than 10 s" in gate.why_not_yarn()
    leadership.is_leader = False
    assert gate.why_not_yarn() == "another replica is leader"

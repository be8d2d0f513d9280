# SPDX-License-Identifier: Apache-2.0
"""Test what only the embedded cluster can show step by step: heartbeats by hand, a clock by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lab.embedded.yarn import EmbeddedYarn, EmbeddedYarnOptions, ExitStatus, Rules
from tests.contract.hadoop.backend import settled
from yarn_copilot.hadoop.model import FAR_OVERCOMMIT_TIMEOUT_MILLIS, NodeId, NodeResourceUpdate, NodeState, Resource

NODE = NodeId("nm-0", 8041)
FAR = FAR_OVERCOMMIT_TIMEOUT_MILLIS


class HandClock:
    """Give seconds that a test moves by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> HandClock:
    """Give a clock that stands still."""
    return HandClock()


@pytest.fixture
async def yarn(clock: HandClock) -> AsyncIterator[EmbeddedYarn]:
    """Run a cluster with one node of 4096 MiB and 4 vcores that reports when told to."""
    rules = Rules(expiry_seconds=10.0, invisible_seconds=0.05)
    async with EmbeddedYarn(EmbeddedYarnOptions(heartbeat_seconds=None, rules=rules, clock=clock)) as started:
        started.add_node(NODE.host, memory_mib=4096, vcores=4)
        yield started


def update(yarn: EmbeddedYarn, memory_mib: int, timeout_millis: int = FAR) -> None:
    """Apply an update at once."""
    resource = Resource(memory_mib, 4)
    yarn.state.apply_update(NodeResourceUpdate(NODE, resource, timeout_millis), now=yarn.now())


def used_mib(yarn: EmbeddedYarn) -> int:
    """Read what reports show as used memory."""
    return yarn.node(NODE).scheduler.visible_use(yarn.now())[0].memory_mib


async def test_asks_are_placed_first_fit_at_heartbeats_and_refilled_when_the_total_allows(yarn: EmbeddedYarn) -> None:
    ask = yarn.ask("etl", memory_mib=1024, vcores=1, count=6)
    assert used_mib(yarn) == 0
    yarn.heartbeat()
    assert (used_mib(yarn), ask.count) == (4096, 2)
    yarn.finish_container(yarn.running()[0])
    assert used_mib(yarn) == 3072
    yarn.heartbeat()
    assert (used_mib(yarn), ask.count) == (4096, 1)


async def test_freed_room_above_a_lowered_total_stays_empty(yarn: EmbeddedYarn) -> None:
    ask = yarn.ask("etl", memory_mib=1024, vcores=1, count=6)
    yarn.heartbeat()
    update(yarn, 1024)
    for container in yarn.running()[:2]:
        yarn.finish_container(container)
    yarn.heartbeat(3)
    assert (len(yarn.running()), ask.count) == (2, 2)


async def test_use_is_invisible_right_after_an_update(yarn: EmbeddedYarn, clock: HandClock) -> None:
    yarn.launch_container(NODE, memory_mib=1024, vcores=1)
    update(yarn, 2048)
    assert used_mib(yarn) == 0
    clock.seconds += 0.051
    assert used_mib(yarn) == 1024


async def test_application_master_dies_last_and_takes_its_application_along(yarn: EmbeddedYarn) -> None:
    application = yarn.new_application()
    other = yarn.add_node("nm-1")
    master = yarn.launch_container(NODE, memory_mib=1024, vcores=1, application=application, is_application_master=True)
    old, young = (yarn.launch_container(NODE, memory_mib=1024, vcores=1, application=application) for _ in range(2))
    far_away = yarn.launch_container(other.node_id, memory_mib=1024, vcores=1, application=application)
    yarn.ask("etl", memory_mib=1024, vcores=1, count=100, application=application)

    update(yarn, 2048, 0)
    assert [young.exit_status, old.exit_status, master.exit_status] == [ExitStatus.PREEMPTED, None, None]
    update(yarn, 512, 0)

    assert [old.exit_status, master.exit_status] == [ExitStatus.PREEMPTED, ExitStatus.PREEMPTED]
    assert far_away.exit_status is ExitStatus.KILLED_AFTER_APPLICATION_COMPLETION
    assert list(yarn.killed()) == [young, old, master]
    assert yarn.state.asks == []


async def test_container_not_yet_reported_is_not_chosen_to_die(yarn: EmbeddedYarn) -> None:
    yarn.ask("etl", memory_mib=1024, vcores=1, count=1)
    yarn.heartbeat()
    update(yarn, 512, 0)
    assert len(yarn.running()) == 1
    yarn.heartbeat()
    assert yarn.running() == []


async def test_application_is_told_before_a_deadline_ends(yarn: EmbeddedYarn, clock: HandClock) -> None:
    container = yarn.launch_container(NODE, memory_mib=1024, vcores=1)
    update(yarn, 512, 3000)
    assert container.preemption_notices == 1
    clock.seconds += 2.9
    yarn.heartbeat()
    assert container.is_running
    clock.seconds += 0.1
    yarn.heartbeat()
    assert container.exit_status is ExitStatus.PREEMPTED


async def test_decommissioning_node_shrinks_to_its_use_and_ends_when_empty(yarn: EmbeddedYarn) -> None:
    container = yarn.launch_container(NODE, memory_mib=1024, vcores=1)
    yarn.decommission(NODE)
    yarn.heartbeat()
    update(yarn, 3000)
    assert yarn.node(NODE).capability == Resource(3000, 4)
    yarn.heartbeat()
    assert yarn.node(NODE).capability == Resource(1024, 1)
    assert container.is_running
    yarn.finish_container(container)
    yarn.heartbeat()
    assert yarn.state.inactive[NODE].state is NodeState.DECOMMISSIONED


async def test_recommissioned_node_has_its_old_capacity_and_is_armed(yarn: EmbeddedYarn, clock: HandClock) -> None:
    container = yarn.launch_container(NODE, memory_mib=1024, vcores=1)
    yarn.decommission(NODE)
    yarn.heartbeat()
    yarn.recommission(NODE)
    assert yarn.node(NODE).capability == Resource(4096, 4)
    clock.seconds += 1
    update(yarn, 512, -1)
    yarn.heartbeat()
    assert container.exit_status is ExitStatus.PREEMPTED


async def test_unhealthy_node_takes_an_update_that_counts_once_it_is_well(yarn: EmbeddedYarn) -> None:
    manager = yarn.node_managers[NODE]
    manager.is_healthy = False
    yarn.heartbeat()
    assert yarn.node(NODE).state is NodeState.UNHEALTHY
    update(yarn, 2048)
    assert yarn.node(NODE).scheduler.total == Resource(4096, 4)
    manager.is_healthy = True
    yarn.heartbeat()
    assert yarn.node(NODE).scheduler.total == Resource(2048, 4)


async def test_resource_manager_restart_keeps_containers_and_forgets_deadlines(yarn: EmbeddedYarn) -> None:
    container = yarn.launch_container(NODE, memory_mib=1024, vcores=1)
    update(yarn, 3000, 0)
    yarn.heartbeat()
    await yarn.restart_rm()
    yarn.heartbeat()
    assert yarn.node(NODE).capability == Resource(3000, 4)
    update(yarn, 512, -1)
    yarn.heartbeat(3)
    assert container.is_running


async def test_update_that_no_heartbeat_told_is_lost_with_the_resource_manager(yarn: EmbeddedYarn) -> None:
    update(yarn, 3000)
    await yarn.restart_rm()
    yarn.heartbeat()
    assert yarn.node(NODE).capability == Resource(4096, 4)


async def test_killed_node_manager_is_lost_after_its_expiry_and_comes_back_as_configured(
    yarn: EmbeddedYarn, clock: HandClock
) -> None:
    container = yarn.launch_container(NODE, memory_mib=1024, vcores=1)
    update(yarn, 3000)
    yarn.heartbeat()
    manager = yarn.node_managers[NODE]
    manager.kill()
    clock.seconds += 9.9
    yarn.heartbeat()
    assert NODE in yarn.state.nodes
    clock.seconds += 0.2
    yarn.heartbeat()
    assert yarn.state.inactive[NODE].state is NodeState.LOST
    assert container.exit_status is ExitStatus.ABORTED
    manager.start()
    yarn.heartbeat()
    assert yarn.node(NODE).capability == Resource(4096, 4)


async def test_node_cut_off_keeps_its_adopted_capacity_when_it_is_heard_again(
    yarn: EmbeddedYarn, clock: HandClock
) -> None:
    update(yarn, 3000)
    yarn.heartbeat()
    yarn.node_managers[NODE].is_reachable = False
    clock.seconds += 11
    yarn.heartbeat()
    yarn.node_managers[NODE].is_reachable = True
    yarn.heartbeat()
    assert yarn.node(NODE).capability == Resource(3000, 4)


async def test_containers_with_a_time_end_by_themselves(yarn: EmbeddedYarn, clock: HandClock) -> None:
    container = yarn.launch_container(NODE, memory_mib=1024, vcores=1, seconds=5)
    clock.seconds += 5
    yarn.heartbeat()
    assert container.exit_status is ExitStatus.SUCCESS


async def test_update_takes_effect_only_after_its_delay() -> None:
    async with EmbeddedYarn(EmbeddedYarnOptions(heartbeat_seconds=None, apply_delay_seconds=0.05)) as yarn:
        yarn.add_node(NODE.host, memory_mib=4096, vcores=4)
        yarn.take([NodeResourceUpdate(NODE, Resource(1024, 1))], "yarn")
        assert yarn.node(NODE).capability == Resource(4096, 4)
        await settled(lambda: yarn.node(NODE).capability == Resource(1024, 1))


async def test_queue_that_has_queues_below_takes_no_applications(yarn: EmbeddedYarn) -> None:
    with pytest.raises(ValueError, match="leaf"):
        yarn.ask("batch", memory_mib=1, vcores=1, count=1)

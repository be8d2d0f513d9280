# SPDX-License-Identifier: Apache-2.0
"""Test that every reloadable choice takes effect in the running controller."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controller.outside import FRESH
from tests.unit.controller.world import World, settings
from yarn_copilot.config.settings import Settings
from yarn_copilot.controller.translation import to_book_settings, to_policy, to_poll_settings
from yarn_copilot.hadoop.model import Resource


@pytest.mark.parametrize(
    ("changes", "vcores", "memory_mib"),
    [
        pytest.param(
            {"capacity": {"reserve": {"cpu_percent": 10, "memory_bytes": 1 << 30}}}, 18, 63 << 10, id="reserve"
        ),
        pytest.param({"capacity": {"origin_max_age_seconds": 1}}, 1, 1024, id="age of origin"),
        pytest.param({"yarn": {"floor_vcores": 30, "floor_memory_mib": 2048}}, 30, 64 << 10, id="floor"),
    ],
)
async def test_a_changed_policy_changes_capacity(changes: dict[str, Any], vcores: int, memory_mib: int) -> None:
    world = World()
    node_id = world.manager()
    async with world:
        world.controller.apply(settings(**changes))
        await world.advance(2)
        assert world.rm.capacity(node_id) == Resource(memory_mib, vcores)


async def test_a_changed_floor_changes_the_claim() -> None:
    world = World()
    world.manager()
    async with world:
        world.controller.apply(settings(yarn={"floor_vcores": 2, "floor_memory_mib": 2048}))
        await world.advance(2)
        assert world.claim() == (2000, 2048)


async def test_a_shorter_growth_window_ends_a_wait() -> None:
    world = World(settings(capacity={"growth_window_seconds": 3600}))
    node_id = world.manager()
    async with world:
        world.kube.annotate(
            "node-1", origin='{"resources":{"kubernetes.io/batch-cpu":30000,"kubernetes.io/batch-memory":"64Gi"}}'
        )
        await world.advance(5)
        assert world.rm.capacity(node_id).vcores == 20
        world.controller.apply(settings(capacity={"growth_window_seconds": 0}))
        await world.advance(2)
        assert world.rm.capacity(node_id).vcores == 30


async def test_the_node_manager_pods_own_request_counts_or_not() -> None:
    world = World()
    world.node()
    world.pod("nm-1", manager=True, cpu="2000", memory="4Gi")
    node_id = world.rm.add("nm-1:8041", used=Resource(2048, 2))
    async with world:
        assert world.rm.capacity(node_id) == Resource(60 << 10, 18)
        manager = next(iter(world.memory().managers.values()))
        world.controller.apply(settings(node_managers={"count_node_manager_pod": False}))
        await world.advance(2)
        assert world.rm.capacity(node_id) == Resource(64 << 10, 20)
        world.controller.apply(settings(node_managers={"count_node_manager_pod": True}))
        await world.advance(2)
        assert world.rm.capacity(node_id) == Resource(60 << 10, 18)
        assert list(world.memory().managers.values()) == [manager]
        assert world.claim() == (2000, 2048)


async def test_weights_of_clusters_move_the_split() -> None:
    world = World(clusters=("a", "b"))
    first, second = world.manager(cluster="a"), world.manager(cluster="b")
    async with world:
        assert (world.rms["a"].capacity(first).vcores, world.rms["b"].capacity(second).vcores) == (10, 10)
        world.controller.apply(settings(node_managers={"cluster_weights": {"a": 3}}))
        await world.advance(2)
        assert (world.rms["a"].capacity(first).vcores, world.rms["b"].capacity(second).vcores) == (15, 5)


async def test_polling_follows_the_new_intervals() -> None:
    world = World()
    world.manager()
    async with world:
        world.controller.apply(settings(yarn={"poll_interval_seconds": 10, "queue_interval_seconds": 60}))
        await world.advance(12)
        reads = world.rm.reads
        await world.advance(100)
        assert 9 <= world.rm.reads - reads <= 11


async def test_the_longest_back_off_and_the_silence_limit_are_taken_over() -> None:
    world = World()
    world.manager()
    async with world:
        world.controller.apply(
            settings(yarn={"unrecognized_backoff_max_seconds": 5}, capacity={"kubernetes_max_silence_seconds": 7})
        )
        assert world.controller.clusters["default"].capacity.unrecognized_backoff_max_seconds == 5
        assert world.controller.gate.max_silence_seconds == 7


async def test_a_longer_heartbeat_makes_a_fall_wait_longer() -> None:
    world = World(settings(yarn={"heartbeat_interval_seconds": 1}))
    node_id = world.manager(used=Resource(8192, 8))
    async with world:
        world.controller.apply(settings(yarn={"heartbeat_interval_seconds": 20}))
        world.rm.change(node_id, used=FRESH)
        await world.advance(15)
        assert world.claim() == (8000, 8192)
        await world.advance(10)
        assert world.claim() == (1000, 1024)


async def test_a_reload_of_equal_settings_writes_nothing() -> None:
    world = World()
    world.manager()
    async with world:
        before = len(world.rm.batches), len(world.kube.patches)
        world.controller.apply(settings())
        await world.advance(3)
        assert (len(world.rm.batches), len(world.kube.patches)) == before


def test_settings_become_the_planners_and_the_loops_values() -> None:
    configured = Settings.model_validate(
        {
            "capacity": {
                "milli_cores_per_vcore": 500,
                "dead_band_vcores": 2,
                "dead_band_memory_mib": 512,
                "reserve": {"cpu_percent": 5, "cpu_milli": 100, "memory_percent": 7, "memory_bytes": 9},
                "foreign_writer_hold_seconds": 33,
            },
            "yarn": {"lost_hold_seconds": 44, "message_lifetime_seconds": 12, "confirm_interval_seconds": 0.3},
            "node_managers": {"default_cluster": "blue", "cluster_weights": {"blue": 2}},
        }
    )
    policy = to_policy(configured)
    assert policy.units.milli_cores_per_vcore == 500
    assert (policy.dead_band.vcores, policy.dead_band.memory_mib) == (2, 512)
    assert (policy.reserve_percent_cpu, policy.reserve_percent_memory) == (5, 7)
    assert (policy.reserve_absolute.cpu_milli, policy.reserve_absolute.memory_bytes) == (100, 9)
    book = to_book_settings(configured)
    assert (book.foreign_hold_seconds, book.lost_hold_seconds, book.message_lifetime_seconds) == (33, 44, 12)
    assert (book.default_cluster, book.cluster_weights) == ("blue", {"blue": 2})
    poll = to_poll_settings(configured)
    assert (poll.interval_seconds, poll.confirm_interval_seconds) == (1.0, 0.3)

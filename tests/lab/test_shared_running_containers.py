# SPDX-License-Identifier: Apache-2.0
"""Show that containers outlive every change of capacity, and that their claim stays while they run."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from batch_resources.giving_way import NUDGE_LIMIT_MIB
from lab.cluster import Lab
from lab.hadoop.application import Application
from tests.lab.bridge import FAST, GIB, MIB, SETTLED_SECONDS, Bridge, BridgedNode, Claim, Unique, merged
from tests.lab.figures import record_figures
from tests.lab.watching import ClaimWatch, ContainerTruth, claims_below_use

_UPDATES = 1000
_AT_ONCE = merged(FAST, {"capacity": {"batch_interval_seconds": 0}})


def test_lowered_capacity_kills_nothing_on_a_node_that_was_armed_by_hand(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique)
    node = bridge.enroll(0, cpu_milli=8000, memory_bytes=8 * GIB)
    # A growth with timeout 0 arms the node: from now on a shrink without a timeout of its own kills at once.
    lab.yarn.set_capacity(node.node_id, 8192, 8, overcommit_timeout_millis=0)
    application = lab.submit()
    application.ask(count=6, memory_mib=1024, node=node.node_id)
    application.wait_running(6)
    controller = bridge.start()
    bridge.wait_claim(node, Claim(6000, 6 * GIB))
    # Over origin and at its floor it keeps a few MiB by which a deadline could still be set and called off.
    for size, memory_mib in ((2, 2048), (8, 8192), (1, 1024 + NUDGE_LIMIT_MIB), (3, 3072)):
        bridge.set_origin(node, size * 1000, size * GIB)
        bridge.wait_capacity(node, memory_mib, size)
    polls = controller.metric("yarn_copilot_loop_cycle_seconds_count", {"loop": "cluster_view"})
    bridge.wait(
        lambda: controller.metric("yarn_copilot_loop_cycle_seconds_count", {"loop": "cluster_view"}) > polls + 8,
        "two seconds of polls have passed",
    )
    assert application.killed() == []
    assert len(application.running()) == 6
    assert bridge.used(node) == (6144, 6)
    assert bridge.claim(node) == Claim(6000, 6 * GIB)


def test_use_falls_below_a_lowered_capacity_and_is_not_refilled(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique)
    node = bridge.enroll(0, cpu_milli=8000, memory_bytes=8 * GIB)
    bridge.start()
    bridge.wait_capacity(node, 8192, 8, seconds=SETTLED_SECONDS)
    application = lab.submit()
    application.ask(count=8, memory_mib=1024, node=node.node_id)
    held = application.wait_running(8)
    application.ask(count=20, memory_mib=1024, node=node.node_id)  # work that waits for room
    bridge.set_origin(node, 3000, 3 * GIB)
    bridge.wait_capacity(node, 3072, 3)
    for left in range(7, 2, -1):
        application.release_container(held[left])
        _wait_use(bridge, node, left)
        _wait_allocated(application, left)
        assert len(application.containers()) == 8, "a freed place was filled again"
    application.release_container(held[2])  # below the capacity: now what waits may come
    application.wait_for(lambda: len(application.containers()) == 9, what="one container took the free place")
    _wait_use(bridge, node, 3)
    bridge.wait_claim(node, Claim(3000, 3 * GIB))
    assert application.killed() == []


def _wait_allocated(application: Application, containers: int) -> None:
    # The RM counts the end of a container before it tells the application.
    application.wait_for(lambda: len(application.allocated()) == containers, what=f"{containers} containers are left")


def _wait_use(bridge: Bridge, node: BridgedNode, containers: int) -> None:
    bridge.wait(lambda: bridge.used(node) == (containers * 1024, containers), f"{containers} containers use the node")


@pytest.mark.timeout(900)  # a minute on a quiet machine, several on a busy one
def test_claim_never_dips_during_a_thousand_updates_of_a_node_in_use(lab: Lab, unique: Unique, tmp_path: Path) -> None:
    bridge = Bridge(lab, unique, config=_AT_ONCE)
    node = bridge.enroll(0, cpu_milli=20_000, memory_bytes=20 * GIB)
    bridge.start()
    bridge.wait_capacity(node, 20_480, 20, seconds=SETTLED_SECONDS)
    application = lab.submit()
    application.ask(count=5, memory_mib=2048, vcores=2, node=node.node_id)
    application.wait_running(5)
    in_use = Claim(10_000, 10 * GIB)
    bridge.wait_claim(node, in_use)
    with ClaimWatch(lab) as watch, ContainerTruth(application) as truth:
        before, began_at = lab.yarn.count_update_calls(), time.monotonic()
        for number in itertools.count():
            # Also below what is used: rises and falls of 1 to 30 vcores.
            vcores = 1 + number * 7 % 30
            bridge.set_origin(node, vcores * 1000, vcores * GIB + number * MIB)
            if number % 50 == 49 and lab.yarn.count_update_calls() - before >= _UPDATES:
                break
        updates, seconds = lab.yarn.count_update_calls() - before, time.monotonic() - began_at
        bridge.set_origin(node, 20_000, 20 * GIB)
        bridge.wait_capacity(node, 20_480, 20)
        assert [version.claim for version in watch.history(node)] == [in_use]
        assert claims_below_use(watch.history(node), truth, node, lag_seconds=0.0) == []
    record_figures(
        "shared-updates-in-use", {"updates": updates, "updates_per_second": updates / seconds}, folder=tmp_path
    )
    assert application.killed() == []
    assert bridge.used(node) == (10_240, 10)

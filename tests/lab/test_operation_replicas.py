# SPDX-License-Identifier: Apache-2.0
"""Show that of two replicas exactly one writes, and that the other takes over in time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lab.cluster import Lab
from lab.controller import ControllerProcess
from tests.lab import access
from tests.lab.bridge import FAST, GIB, SETTLED_SECONDS, Bridge, BridgedNode, Claim, Unique
from tests.lab.figures import record_figures

_TAKE_OVER_SECONDS = 150.0
"""Ten times the time in which a standby should take over."""
_PAUSE_SECONDS = 15.0
_SECOND_ACCOUNT = "yarn-copilot-second"


class Pair:
    """Hold two replicas with accounts of their own, so that the API server's counts tell them apart."""

    def __init__(self, lab: Lab, unique: Unique) -> None:
        self.bridge = Bridge(lab, unique, config=FAST)
        self.node: BridgedNode = self.bridge.enroll(0, cpu_milli=8000, memory_bytes=8 * GIB)
        self.first = self.bridge.start()
        self.bridge.wait_capacity(self.node, 8192, 8, seconds=SETTLED_SECONDS)
        self.second_patches = self.count_second_patches()  # the account serves other tests of the session too
        self.second = self.bridge.controller(token=access.grant_access(lab, _SECOND_ACCOUNT)).start()
        self.second.wait_ready()

    def count_second_patches(self) -> int:
        """Count the patches of Nodes by the second replica's account, at the API server."""
        return self.bridge.lab.kubernetes.count_requests("patch", "nodes", user=access.user_of(_SECOND_ACCOUNT))

    def wait_leader(self, controller: ControllerProcess) -> float:
        """Wait until a replica leads and give the seconds that it took."""
        began_at = time.monotonic()
        self.bridge.wait(lambda: is_leader(controller), f"{controller.name} leads", seconds=_TAKE_OVER_SECONDS)
        return time.monotonic() - began_at

    def check_follows(self, vcores: int, *, seconds: float = _TAKE_OVER_SECONDS) -> float:
        """Give the node another origin and wait until it is applied; gives the seconds that it took."""
        began_at = time.monotonic()
        self.bridge.set_origin(self.node, vcores * 1000, vcores * GIB)
        self.bridge.wait_capacity(self.node, vcores * 1024, vcores, seconds=seconds)
        return time.monotonic() - began_at


def is_leader(controller: ControllerProcess) -> bool:
    """Ask a replica whether it leads."""
    return bool(controller.get("/api/v1/status").json()["leader"])


@pytest.fixture
def pair(lab: Lab, unique: Unique) -> Pair:
    """Run two replicas; the first one leads."""
    return Pair(lab, unique)


def test_standby_serves_the_api_and_says_that_it_does_not_lead(pair: Pair) -> None:
    assert is_leader(pair.first)
    assert not is_leader(pair.second)
    answer = pair.second.get("/api/v1/nodes").json()
    assert answer["leader"] is False
    assert 0 <= answer["age_seconds"] < SETTLED_SECONDS
    (view,) = answer["nodes"]
    assert view["node"] == pair.node.name
    assert view["node_managers"][0]["capacity"] == {"memory_mib": 8192, "vcores": 8}
    assert pair.second.get("/readyz").status_code == 200
    pair.check_follows(7)
    pair.bridge.wait(
        lambda: pair.second.get("/api/v1/nodes").json()["nodes"][0]["origin"]["cpu_milli"] == 7000,
        "the standby has seen the change too",
    )
    assert pair.count_second_patches() == pair.second_patches
    assert pair.second.metric("yarn_copilot_leader") == 0


def test_other_replica_takes_over_after_a_kill_and_sooner_after_a_clean_end(pair: Pair, tmp_path: Path) -> None:
    began_at = time.monotonic()
    pair.first.sigkill()
    pair.check_follows(6)
    killed_seconds = time.monotonic() - began_at
    pair.first.start()
    pair.first.wait_ready()
    assert is_leader(pair.second)
    began_at = time.monotonic()
    assert pair.second.terminate() == 0
    pair.check_follows(5)
    clean_seconds = time.monotonic() - began_at
    assert is_leader(pair.first)
    record_figures(
        "replica-take-over", {"killed_seconds": killed_seconds, "clean_seconds": clean_seconds}, folder=tmp_path
    )
    assert clean_seconds < killed_seconds  # a lease that was given back has not to run out


def test_replica_that_wakes_after_it_lost_the_lease_writes_nothing(pair: Pair) -> None:
    bridge, node = pair.bridge, pair.node
    application = bridge.lab.submit()
    application.ask(count=2, memory_mib=1024, node=node.node_id)
    application.wait_running(2)
    bridge.wait_claim(node, Claim(2000, 2 * GIB))
    pair.first.pause()
    paused_at = time.monotonic()
    bridge.set_origin(node, 6000, 6 * GIB)  # waits for it when it wakes, and is long done then
    pair.wait_leader(pair.second)
    bridge.wait_capacity(node, 6144, 6, seconds=_TAKE_OVER_SECONDS)
    bridge.wait(lambda: time.monotonic() - paused_at > _PAUSE_SECONDS, "it was frozen for long enough")
    application.release(1)
    bridge.wait_claim(node, Claim(1000, GIB))

    before = _counts(bridge)
    pair.first.resume()
    bridge.wait(lambda: not is_leader(pair.first), "the old leader has seen that it lost the lease")
    polls = _polls(pair.first)
    bridge.wait(lambda: _polls(pair.first) > polls + 8, "it works on")
    assert _counts(bridge) == before
    assert bridge.capacity(node) == (6144, 6)
    assert bridge.claim(node) == Claim(1000, GIB)
    # It is a good standby now.
    pair.second.sigkill()
    pair.check_follows(5)
    assert is_leader(pair.first)


def _counts(bridge: Bridge) -> tuple[int, int]:
    """Count patches of the first replica's account, and the updates that came to the ResourceManager from anybody."""
    patches = bridge.lab.kubernetes.count_requests("patch", "nodes", user=access.user_of(access.ACCOUNT))
    return patches, bridge.lab.yarn.count_update_calls()


def _polls(controller: ControllerProcess) -> float:
    return controller.metric("yarn_copilot_loop_cycle_seconds_count", {"loop": "cluster_view"})
